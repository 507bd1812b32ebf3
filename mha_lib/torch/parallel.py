"""The heads of a layer on several devices: each computes its own, and one sum brings them together.

`python -m mha_lib.torch.parallel --processes 2` shows it on this machine, with a real layer.
"""

import argparse
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _checks
from ..data import load_layer
from ._processes import bytes_sent, run, settled_bytes_sent
from .multihead import MultiHeadAttention

COLUMNS = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V")  # cut along the last axis, the heads; W_O along its rows


def shard_heads(layer, rank, size):
    """The part of a layer that device `rank` of `size` computes: a layer of its own, with H / size of the heads.

    layer: a `MultiHeadAttention`. The part holds columns of W_Q, W_K, W_V (and their biases) and the rows of W_O that meet them,
    as copies. It has no b_O: the parts' outputs, each (..., L, E), add up to the layer's output without b_O.
    Errors: ValueError where the heads, or the key heads of grouped queries, cannot be shared out evenly.
    Source: Shoeybi et al. 2019, section 3.

    >>> layer, x = MultiHeadAttention(8, 4), torch.ones(3, 8)
    >>> parts = [shard_heads(layer, rank, 2) for rank in range(2)]
    >>> bool(torch.allclose(parts[0](x) + parts[1](x) + layer.b_O, layer(x), atol=1e-6))
    True
    """
    if not isinstance(layer, MultiHeadAttention):
        raise TypeError(f"layer must be a mha_lib.torch.MultiHeadAttention, got {type(layer).__name__}")
    size, rank = _checks.integer("size", size, 1), _checks.integer("rank", rank, 0)
    if rank >= size:
        raise ValueError(f"rank must be below size, got rank {rank} of size {size}")
    for name, heads in (("num_heads", layer.num_heads), ("num_kv_heads", layer.num_kv_heads)):
        if heads % size:
            raise ValueError(f"{name} must be divisible by the number of devices, got {heads} heads for {size} devices")
    part = MultiHeadAttention(
        layer.embed_dim, layer.num_heads // size, num_kv_heads=layer.num_kv_heads // size, head_dim=layer.head_dim,
        kdim=layer.kdim, vdim=layer.vdim, bias=False, rope=layer.rope, rope_base=layer.rope_base, dropout=layer.dropout,
        device=layer.W_O.device, dtype=layer.W_O.dtype,
    )  # fmt: skip
    for name in (*COLUMNS, "W_O"):
        whole = getattr(layer, name)
        if whole is not None:
            own = whole.detach().chunk(size, 0 if name == "W_O" else -1)[rank]
            setattr(part, name, nn.Parameter(own.clone()))
    return part


class ParallelMultiHeadAttention(nn.Module):
    """A layer whose heads are spread over the devices of a mesh; every device gives the whole output.

    layer: the whole `MultiHeadAttention`, the same on every device; of it only this device's part is kept, in `part`
    (see `shard_heads`), and b_O. mesh: a `DeviceMesh` of one axis. Call and result are those of the layer, except that no weights
    are returned; query, key and value are the same on every device, and so is the output. A cache holds this device's heads.
    One call costs one all-reduce of the output, and its backward pass one for each input that was given: the parts' gradients
    of an input add up. Gradients of the weights need no message. Seed devices apart where dropout is used.
    Errors: as `shard_heads` and the layer; TypeError or ValueError for another mesh.
    Source: Shoeybi et al. 2019, section 3.

    >>> from torch import distributed
    >>> from torch.distributed.device_mesh import init_device_mesh
    >>> distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    >>> layer, x = MultiHeadAttention(8, 4), torch.ones(3, 8)
    >>> bool(torch.allclose(ParallelMultiHeadAttention(layer, init_device_mesh("cpu", (1,)))(x), layer(x), atol=1e-6))
    True
    >>> distributed.destroy_process_group()
    """

    def __init__(self, layer, mesh):
        super().__init__()
        if not isinstance(mesh, DeviceMesh):
            raise TypeError(f"mesh must be a DeviceMesh of one axis, got {type(mesh).__name__}")
        if mesh.ndim != 1:
            raise ValueError(f"mesh must have one axis, got the shape {tuple(mesh.shape)}")
        self.mesh = mesh
        self.part = shard_heads(layer, mesh.get_local_rank(), mesh.size())
        self.b_O = None if layer.b_O is None else nn.Parameter(layer.b_O.detach().clone())

    def forward(self, query, key=None, value=None, *, mask=None, bias=None, is_causal=False, cache=None):
        """As the layer's call."""
        query, key, value = (self._same_everywhere(x) for x in (query, key, value))
        options = {
            "mask": self._of_own_heads("mask", mask),
            "bias": self._of_own_heads("bias", bias),
            "is_causal": is_causal,
            "cache": cache,
        }
        partial = self.part(query, key, value, **options)  # (..., L, E): what this device's heads add
        output = DTensor.from_local(partial, self.mesh, [Partial()]).full_tensor()  # (..., L, E): one all-reduce
        return output if self.b_O is None else output + self.b_O  # once, after the sum

    def _same_everywhere(self, x):
        """x itself; in the backward pass the devices' gradients of it are added up, which is the other all-reduce."""
        if not isinstance(x, torch.Tensor):
            return x  # None, or what the layer refuses
        return DTensor.from_local(x, self.mesh, [Replicate()], run_check=False).to_local(grad_placements=[Partial()])

    def _of_own_heads(self, name, x):
        """The part of a mask or bias that is for this device's heads; what is for all heads alike stays as it is."""
        heads = self.part.num_heads * self.mesh.size()
        if not isinstance(x, torch.Tensor) or x.ndim < 3 or x.shape[-3] == 1:
            return x
        if x.shape[-3] != heads:
            raise ValueError(f"{name} must have 1 or {heads} heads on its axis -3, got shape {tuple(x.shape)}")
        return x.chunk(self.mesh.size(), -3)[self.mesh.get_local_rank()]


def ring_all_reduce_bytes(numbers, size, itemsize=4):
    """The bytes that each of `size` devices sends when they add up arrays of `numbers` numbers in a ring.

    The array is cut into `size` pieces; size - 1 rounds add them up and size - 1 rounds hand the sums around, one piece each.
    Errors: ValueError or TypeError for numbers that are no integers, or below 0, and a size below 1.
    Source: Patarasuk and Yuan 2009.

    >>> ring_all_reduce_bytes(16 * 384, 4)
    36864.0
    """
    numbers, size = _checks.integer("numbers", numbers, 0), _checks.integer("size", size, 1)
    return 2 * (size - 1) / size * numbers * itemsize


class CountAllReduces(TorchDispatchMode):
    """A context that notes, for each all-reduce started in it, how many numbers are added up: a list `.numbers`."""

    def __init__(self):
        super().__init__()
        self.numbers = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.name().startswith("_c10d_functional::all_reduce"):
            self.numbers.append(args[0].numel())
        return function(*args, **(kwargs or {}))


# -------------------------------------------------------------------------------------------------- python -m mha_lib.torch.parallel
def real_layer(device="cpu"):
    """The real layer and its input, in float64: (layer, x (16, 384))."""
    data = load_layer()
    layer = MultiHeadAttention.from_arrays(data, device=device, dtype=torch.float64)
    return layer, torch.tensor(data.x, dtype=torch.float64, device=device)


def compare(mesh, lost=None):
    """One pass forward and back, whole and in parts: relative differences, and what was sent. Process `lost` kills itself."""
    layer, x = real_layer(mesh.device_type)
    rank, size = mesh.get_local_rank(), mesh.size()
    parallel = ParallelMultiHeadAttention(layer, mesh)
    if lost is not None:
        dist.barrier(mesh.get_group())  # all have met: a peer that is lost earlier makes Gloo write a log of its own
    if rank == lost:
        os.kill(os.getpid(), signal.SIGKILL)
    whole_x, parts_x = x.clone().requires_grad_(), x.clone().requires_grad_()
    with CountAllReduces() as forward:
        before, output = bytes_sent(), parallel(parts_x)
        sent = None if before is None else settled_bytes_sent() - before
    with CountAllReduces() as backward:
        output.sin().sum().backward()
    whole = layer(whole_x)
    whole.sin().sum().backward()
    pairs = {"output": (output, whole), "gradient of the input": (parts_x.grad, whole_x.grad),
             "gradient of b_O": (parallel.b_O.grad, layer.b_O.grad)}  # fmt: skip
    for name, parameter in parallel.part.named_parameters():
        wanted = getattr(layer, name).grad.chunk(size, 0 if name == "W_O" else -1)[rank]
        pairs[f"gradient of {name}"] = (parameter.grad, wanted)
    differences = {}
    for name, (ours, wanted) in pairs.items():
        ours, wanted = ours.detach(), wanted.detach()
        # the gradient of b_K is 0 and what is left of it is rounding, so it is measured against that of W_K
        largest = pairs["gradient of W_K"][1].abs().max() if name.endswith("b_K") else wanted.abs().max()
        differences[name] = float((ours - wanted).abs().max() / largest)
    return {"differences": differences, "forward": forward.numbers, "backward": backward.numbers, "sent": sent}


def report(results, layer, x):
    """What `compare` found, as text."""
    size = len(results)
    lines = [f"{size} processes, {layer.num_heads // size} of {layer.num_heads} heads each, against one process"]
    for name in results[0]["differences"]:
        worst = max(result["differences"][name] for result in results)
        lines.append(f"    {name:22} {'equal' if worst <= 1e-12 else f'NOT EQUAL: {worst:.1e} off'}")
    for name in ("forward", "backward"):
        numbers = [result[name] for result in results]
        lines.append(f"all-reduces {name}: {numbers[0] if all(n == numbers[0] for n in numbers) else numbers} numbers")
    formula = ring_all_reduce_bytes(x.numel(), size, x.element_size())
    lines.append(f"bytes each sends in one all-reduce, by the formula: {formula:.0f}")
    sent = [result["sent"] for result in results]
    if None not in sent:
        close = all(formula <= number <= 1.04 * formula for number in sent)
        lines.append(f"bytes sent, as the system counts them: {'the same, and headers' if close else sent}")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description="The real layer with its heads in several processes, against one process."
    )
    parser.add_argument("--processes", type=int, default=2, metavar="P")
    parser.add_argument(
        "--kill", type=int, metavar="RANK", help="then once more, and this process kills itself on the way"
    )
    options = parser.parse_args(arguments)
    layer, x = real_layer()
    try:
        shard_heads(layer, 0, options.processes)
        if options.kill is not None and not 0 <= options.kill < options.processes:
            raise ValueError(f"--kill must name one of the processes 0..{options.processes - 1}, got {options.kill}")
        print(report(run(compare, options.processes), layer, x), flush=True)
        if options.kill is not None:
            run(compare, options.processes, options.kill)
    except (RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    from mha_lib.torch import parallel  # the name by which the processes find `compare`

    parallel.main()

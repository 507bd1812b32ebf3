"""Heads in several processes: equal to one process, one message each way, and no process left behind whatever happens."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from common import close

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

from mha_lib.torch import KVCache, MultiHeadAttention, causal_mask  # noqa: E402
from mha_lib.torch._processes import run, settled_bytes_sent, sockets  # noqa: E402
from mha_lib.torch.parallel import (  # noqa: E402
    CountAllReduces,
    ParallelMultiHeadAttention,
    compare,
    ring_all_reduce_bytes,
    shard_heads,
)

torch.set_num_threads(1)
SIZES = (1, 2, 4)
LAYERS = [
    {},
    {"num_kv_heads": 4},
    {"head_dim": 3, "bias": False, "num_kv_heads": 4},
    {"rope": "halves", "kdim": 5, "vdim": 6},
]


def layer_of(options, dtype=torch.float64):
    torch.manual_seed(1)
    layer = MultiHeadAttention(16, 8, dtype=dtype, **options)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return layer


def inputs_of(layer, dtype=torch.float64):
    """Self-attention, causal, a mask and a bias that differ from head to head; another key and value where they have own widths."""
    torch.manual_seed(2)
    x = torch.randn(2, 3, 16, dtype=dtype)
    y, z = torch.randn(2, 3, layer.kdim, dtype=dtype), torch.randn(2, 3, layer.vdim, dtype=dtype)
    inputs = (x,) if layer.kdim == layer.vdim == 16 else (x, y, z)
    own = {"mask": (torch.rand(8, 3, 3) > 0.3), "bias": torch.randn(2, 8, 1, 3, dtype=dtype)}
    return inputs, [{}, {"is_causal": True}, own, {"mask": causal_mask(3)}]


# ------------------------------------------------------------------------------------------------------------------ equal, in parts
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_the_parts_add_up_to_the_layer(options, size):
    layer = layer_of(options)
    inputs, _ = inputs_of(layer)
    parts = [shard_heads(layer, rank, size) for rank in range(size)]
    total = sum(part(*inputs) for part in parts) + (0 if layer.b_O is None else layer.b_O)
    close(total.detach(), layer(*inputs).detach())
    assert sum(p.numel() for part in parts for p in part.parameters()) == sum(
        p.numel() for name, p in layer.named_parameters() if name != "b_O"
    )


def test_a_part_is_a_copy():
    layer = layer_of({})
    part = shard_heads(layer, 1, 2)
    with torch.no_grad():
        part.W_Q.zero_()
    assert layer.W_Q.abs().min() > 0 and part.b_O is None and part.num_heads == 4


# ---------------------------------------------------------------------------------------------------------- equal, in processes
def gradients(layer, inputs, options):
    """Output and gradients of one pass, by name."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    output = layer(*inputs, **options)
    output.sin().sum().backward()
    found = {"output": output} | {f"input {i}": x.grad for i, x in enumerate(inputs)}
    return {name: x.detach().numpy() for name, x in found.items()}


def all_cases(mesh, dtype):
    """For each layer and each call: the names of what differs from one process."""
    rank, size, wrong = mesh.get_local_rank(), mesh.size(), []
    for number, options in enumerate(LAYERS):
        whole = layer_of(options, dtype)
        inputs, calls = inputs_of(whole, dtype)
        for call in calls:
            whole.zero_grad()
            parallel = ParallelMultiHeadAttention(whole, mesh)
            want, got = gradients(whole, inputs, call), gradients(parallel, inputs, call)
            for name, parameter in whole.named_parameters():
                if name == "b_O":
                    mine, wanted = parallel.b_O.grad, parameter.grad
                else:
                    mine = getattr(parallel.part, name).grad
                    wanted = parameter.grad.chunk(size, 0 if name == "W_O" else -1)[rank]
                want[name], got[name] = wanted.numpy(), mine.numpy()
            for name in want:
                largest = max(abs(want[name]).max(), 1.0 if name == "b_K" else 1e-3)  # without a mask that of b_K is 0
                limit = 1e-12 if dtype == torch.float64 else 1e-6 if name == "output" else 1e-5  # both sides round
                if abs(got[name] - want[name]).max() > limit * largest:
                    wrong.append((number, list(call), name))
    return wrong


@pytest.mark.parametrize("size", SIZES)
def test_output_and_gradients_equal_one_process(size):
    for wrong in run(all_cases, size, torch.float64):
        assert wrong == []


def test_output_and_gradients_equal_one_process_in_float32():
    for wrong in run(all_cases, 2, torch.float32):
        assert wrong == []


def decode(mesh):
    """Token by token with a cache of this process's heads, against one pass over the whole."""
    layer = layer_of({"num_kv_heads": 4, "rope": "halves"})
    parallel = ParallelMultiHeadAttention(layer, mesh)
    torch.manual_seed(3)
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    cache = KVCache(2, 4 // mesh.size(), 5, layer.head_dim, dtype=torch.float64)
    with torch.no_grad():
        steps = [parallel(x[:, i : i + 1], is_causal=True, cache=cache) for i in range(5)]
        return float((torch.cat(steps, 1) - layer(x, is_causal=True)).abs().max()), cache.nbytes


def test_each_process_caches_its_own_heads():
    (one,), two = run(decode, 1), run(decode, 2)
    assert max(difference for difference, _ in [one, *two]) < 1e-12
    assert [nbytes for _, nbytes in two] == [one[1] // 2] * 2


# ------------------------------------------------------------------------------------------------------------------------ messages
def messages(mesh):
    layer = layer_of({"kdim": 5, "vdim": 6})
    parallel = ParallelMultiHeadAttention(layer, mesh)
    inputs, _ = inputs_of(layer)
    with CountAllReduces() as forward:
        output = parallel(*(x.requires_grad_() for x in inputs))
    with CountAllReduces() as backward:
        output.sum().backward()
    with CountAllReduces() as inference, torch.no_grad():
        parallel(*inputs)
    return forward.numbers, sorted(backward.numbers), inference.numbers


def test_one_all_reduce_forward_and_one_for_each_input_backward():
    n = 2 * 3 * 16
    for forward, backward, inference in run(messages, 2):
        assert (forward, inference) == ([n], [n])
        assert backward == [2 * 3 * 5, 2 * 3 * 6, n]


def send(mesh, numbers):
    """Bytes that leave this process in an all-reduce of so many float64, without what does not depend on their number."""
    counts = []
    for n in numbers:
        before = settled_bytes_sent()
        dist.all_reduce(torch.ones(n, dtype=torch.float64))
        counts.append(None if before is None else settled_bytes_sent() - before)
    return counts


@pytest.mark.parametrize("size", [2, 4])
def test_the_formula_counts_what_is_really_sent(size):
    for small, large in run(send, size, [6144, 3 * 6144]):
        if small is None:
            pytest.skip("this system does not count the bytes of a connection")
        assert large - small == ring_all_reduce_bytes(2 * 6144, size, 8)
        assert 0 <= small - ring_all_reduce_bytes(6144, size, 8) < 4000  # headers


def addresses(mesh):
    return [one.getsockname()[0] for one in sockets()]


def test_nothing_leaves_this_machine():
    for found in run(addresses, 2):
        assert all(address in ("127.0.0.1", "::1", "::ffff:127.0.0.1") for address in found), found


# -------------------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    "options, size, message",
    [
        ({}, 3, "num_heads must be divisible by the number of devices, got 8 heads for 3 devices"),
        ({"num_kv_heads": 2}, 4, "num_kv_heads must be divisible by the number of devices, got 2 heads for 4 devices"),
        ({}, 0, "size must be an integer >= 1, got 0"),
    ],
)
def test_heads_that_cannot_be_shared_out(options, size, message):
    with pytest.raises(ValueError, match=message):
        shard_heads(layer_of(options), 0, size)


def test_a_rank_beyond_the_size_and_another_layer():
    with pytest.raises(ValueError, match="rank must be below size, got rank 2 of size 2"):
        shard_heads(layer_of({}), 2, 2)
    with pytest.raises(TypeError, match="layer must be a mha_lib.torch.MultiHeadAttention, got Linear"):
        shard_heads(torch.nn.Linear(2, 2), 0, 2)


def fail(mesh, folder, how):
    """Process 1 fails; the others wait for it in an all-reduce."""
    Path(folder, str(os.getpid())).touch()
    dist.barrier()
    if mesh.get_local_rank() == 1:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "leaves":
            os._exit(3)
        elif how == "silent":
            time.sleep(1000)
        elif how == "real-time signal":
            os.kill(os.getpid(), 40)
        elif how == "raises nothing but a name":
            raise ValueError
        elif how == "exits":
            sys.exit(4)
        else:
            raise ValueError("something of its own\nand a second line")
    dist.all_reduce(torch.ones(3))


@pytest.mark.parametrize(
    "how, message, timeout",
    [
        ("killed", "^process 1 of 3 was killed by SIGKILL; the others were stopped$", 300),
        ("leaves", r"^process 1 of 3 ended without an answer \(status 3\); the others were stopped$", 300),
        ("real-time signal", "^process 1 of 3 was killed by signal 40; the others were stopped$", 300),
        ("raises nothing but a name", "^process 1 of 3 stopped with ValueError; the others were stopped$", 300),
        ("exits", "^process 1 of 3 stopped with SystemExit: 4; the others were stopped$", 300),
        ("raises", "^process 1 of 3 stopped with ValueError: something of its own; the others were stopped$", 300),
        ("silent", "^no answer from process 0, 1, 2 of 3 within 5 s; all were stopped$", 5),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_no_process(tmp_path, how, message, timeout):
    """The first three would hang for 300 seconds if the failure were not noticed at once."""
    with pytest.raises(RuntimeError, match=message):
        run(fail, 3, str(tmp_path), how, timeout=timeout)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 3
    wait_for(lambda: not any(alive(pid) for pid in pids))


def answer(mesh, how):
    if how == "tensor":
        return torch.full((3,), float(mesh.get_local_rank()))
    return lambda: None


def test_an_answer_may_be_a_tensor():
    """It is whole when its process has ended."""
    assert [one.tolist() for one in run(answer, 2, "tensor")] == [[0.0] * 3, [1.0] * 3]


def test_an_answer_that_cannot_be_sent_says_so():
    with pytest.raises(
        RuntimeError, match=r"^process \d of 2 stopped with .*pickle.*lambda.*; the others were stopped$"
    ):
        run(answer, 2, "lambda")


@pytest.mark.parametrize(
    "work, arguments, message",
    [
        (3, (), "^work must be a function that other processes can import, got int$"),
        (lambda mesh: None, (), "^work and its arguments must be such that they can be pickled: .*lambda"),
        (fail, (lambda: None,), "^work and its arguments must be such that they can be pickled: .*lambda"),
    ],
)
def test_work_that_cannot_be_sent_starts_no_process(work, arguments, message):
    before = set(multiprocessing.active_children())
    with pytest.raises(TypeError, match=message):
        run(work, 2, *arguments)
    assert set(multiprocessing.active_children()) == before


def test_a_long_timeout_is_no_error():
    assert run(answer, 1, "tensor", timeout=1e15)[0].tolist() == [0.0] * 3


@pytest.fixture
def alone():
    """A mesh of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield lambda *shape: init_device_mesh("cpu", shape)
    dist.destroy_process_group()


def test_another_mesh_is_refused(alone):
    with pytest.raises(TypeError, match="mesh must be a DeviceMesh of one axis, got int"):
        ParallelMultiHeadAttention(layer_of({}), 2)
    with pytest.raises(ValueError, match=r"mesh must have one axis, got the shape \(1, 1\)"):
        ParallelMultiHeadAttention(layer_of({}), alone(1, 1))


@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_mask_for_some_heads_is_refused(alone, name):
    """As many as one device of two has would fit there, and mean other heads on each."""
    parallel = ParallelMultiHeadAttention(layer_of({}), alone(1))
    given = torch.ones(4, 3, 3, dtype=torch.bool if name == "mask" else torch.float64)
    with pytest.raises(ValueError, match=rf"{name} must have 1 or 8 heads on its axis -3, got shape \(4, 3, 3\)"):
        parallel(torch.ones(3, 16, dtype=torch.float64), **{name: given})


def test_what_is_no_tensor_is_named(alone):
    parallel = ParallelMultiHeadAttention(layer_of({}), alone(1))
    with pytest.raises(TypeError, match=r"query must be a torch.Tensor, got list"):
        parallel([[1.0] * 16])
    with pytest.raises(TypeError, match=r"mask must be a boolean torch.Tensor"):
        parallel(torch.ones(3, 16, dtype=torch.float64), mask=[[True] * 3] * 3)


@pytest.mark.parametrize("numbers, size", [(3, 0), (-1, 2), (2.5, 2)])
def test_bytes_of_no_ring(numbers, size):
    with pytest.raises((ValueError, TypeError), match="must be an integer"):
        ring_all_reduce_bytes(numbers, size)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("still running after 30 seconds")


def in_session(session):
    """The processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(sid) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


def test_the_program_says_what_it_found_and_what_was_killed():
    command = [sys.executable, "-m", "mha_lib.torch.parallel", "--kill", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    assert out.startswith("2 processes, 6 of 12 heads each") and out.count(" equal\n") == 10 and "NOT" not in out
    assert "all-reduces forward: [6144] numbers\nall-reduces backward: [6144] numbers\n" in out and ": 49152\n" in out
    assert errors == "error: process 1 of 2 was killed by SIGKILL; the others were stopped\n"
    wait_for(lambda: not in_session(process.pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not list processes in /proc")
def test_no_process_outlives_a_killed_caller():
    code = (
        "from test_parallel import fail, run; import tempfile; run(fail, 2, tempfile.mkdtemp(), 'silent', timeout=300)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, env=environment)
    try:
        wait_for(lambda: len(in_session(process.pid)) >= 5)  # the caller, its tracker and server, two processes
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not in_session(process.pid))


def test_heads_that_cannot_be_shared_out_start_no_process():
    command = [sys.executable, "-m", "mha_lib.torch.parallel", "--processes", "5"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: num_heads must be divisible by the number of devices, got 12 heads for 5 devices\n"


def test_compare_finds_no_difference_with_three_processes():
    """A size that is no power of two."""
    for result in run(compare, 3):
        assert max(result["differences"].values()) <= 1e-12


@pytest.mark.parametrize("rank", ["2", "-1"])
def test_a_process_that_there_is_not_cannot_be_killed(capsys, rank):
    from mha_lib.torch import parallel

    with pytest.raises(SystemExit, match=f"^error: --kill must name one of the processes 0..1, got {rank}$"):
        parallel.main(["--kill", rank])

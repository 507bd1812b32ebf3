"""A filter of system calls for the sandbox: what no answer needs, and what has been used to break out of sandboxes.

The program is classic BPF, as seccomp(2) takes it: load a word, compare, jump, return.
"""

import errno
import platform
import struct

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
NEW_USER = 0x10000000  # CLONE_NEWUSER
X32 = 0x40000000

# name: (x86-64, arm64). Shared memory and memfd are here because they hold memory that no limit of a process counts.
DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "mount_setattr": (442, 442),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "open_by_handle_at": (304, 265), "personality": (135, 92),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273), "quotactl": (179, 60),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def program():
    """The filter as bytes for `bwrap --seccomp`; None on a processor that is not listed."""
    if platform.machine() not in MACHINES:
        return None
    column, machine = MACHINES[platform.machine()]
    steps = [
        _step(LOAD, MACHINE), _step(EQUAL, machine, 1, 0), _step(RETURN, KILL),
        _step(LOAD, NUMBER), _step(AT_LEAST, X32, 0, 1), _step(RETURN, KILL),
    ]  # fmt: skip
    for numbers in DENIED.values():
        steps += [_step(EQUAL, numbers[column], 0, 1), _step(RETURN, ERROR | errno.EPERM)]
    # clone3 hides its flags in memory: the C library takes "not implemented" as a reason to use clone
    steps += [_step(EQUAL, CLONE3[column], 0, 1), _step(RETURN, ERROR | errno.ENOSYS)]
    steps += [_step(EQUAL, CLONE[column], 0, 3), _step(LOAD, FIRST_ARGUMENT), _step(ANY_BIT, NEW_USER, 0, 1)]
    steps += [_step(RETURN, ERROR | errno.EPERM), _step(RETURN, ALLOW)]
    return b"".join(steps)


def _step(code, value, if_true=0, if_false=0):
    return struct.pack("<HBBI", code, if_true, if_false, value)

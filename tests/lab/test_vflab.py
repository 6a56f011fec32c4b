# SPDX-License-Identifier: Apache-2.0
"""Tests of the lab's own judgement, without a boot: python3 -m pytest tests/lab/test_vflab.py"""

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from vflab import (disk, guide, hub, pages, panic, parts, plan, qemu, runner,  # noqa: E402
                   scenario, second_host, two_hosts)
from vflab.host import Result  # noqa: E402
from vflab.paths import LAB, Lock  # noqa: E402
from vflab.vm import VM  # noqa: E402

STACK = """[   61.0] BUG: unable to handle page fault for address: 0000000000001000
[   61.0] CPU: 1 PID: 612 Comm: {comm} Not tainted 6.1.0-1-amd64 #1
[   61.0]  {symbol}+0x12/0x40
[   61.0] Kernel panic - not syncing: Fatal exception
[   61.1] ---[ end Kernel panic - not syncing: Fatal exception ]---
"""


def test_a_panic_without_us_is_the_emulators():
    console = STACK.format(comm="CPU 0/KVM", symbol="schedule")
    assert panic.emulator_is_to_blame(console)


def test_a_panic_is_told_in_a_few_lines():
    console = STACK.format(comm="CPU 0/KVM", symbol="schedule")
    told = panic.panic_summary("--- lab: boot 1: quiet\n" + console)
    assert len(told) == 3
    assert "BUG: unable" in told[0] and "CPU 0/KVM" in told[1] and panic.PANIC in told[2]
    assert panic.panic_summary("all is well") == []


def test_a_long_recursion_does_not_hide_who_ran():
    lines = STACK.format(comm="vfmgrd", symbol="schedule").splitlines()
    lines[2:2] = ["[   61.0] RIP: 0010:exc_page_fault+0x15/0x170"] * 900
    assert not panic.emulator_is_to_blame("\n".join(lines))


def test_a_complaint_of_an_earlier_boot_is_not_the_panics():
    ours = STACK.format(comm="vfmgrd", symbol="schedule").splitlines()[:2]
    later = ["--- lab: boot 2: quiet", *STACK.format(comm="CPU 0/KVM", symbol="x").splitlines()]
    assert panic.emulator_is_to_blame("\n".join(ours + later))


def test_a_panic_with_a_process_of_ours_is_a_failure():
    for comm in ("vfmgrd", "vfctl", "vf-guest", "vfmgr-io"):
        console = STACK.format(comm=comm, symbol="igb_disable_sriov")
        assert panic.panic_text(console)
        assert not panic.emulator_is_to_blame(console)


def test_a_boot_without_timers_is_the_emulators_until_it_is_over():
    boot = "--- lab: boot {n}: quiet\n"
    stall = f"[   22.8] rcu: rcu_preempt {panic.TIMER_LOST} for 5251 jiffies!\n"
    ready = f"{panic.READY}\n"
    assert panic.emulator_is_to_blame(boot.format(n=1) + stall)
    assert not panic.emulator_is_to_blame(boot.format(n=1) + stall + ready)
    assert not panic.emulator_is_to_blame(boot.format(n=1) + stall + boot.format(n=2) + ready)
    assert not panic.emulator_is_to_blame(boot.format(n=1))


def test_a_double_fault_before_any_instruction_of_the_kernels_is_the_emulators():
    entry = """[   61.0] traps: PANIC: double fault, error_code: 0x0
[   61.0] CPU: 0 PID: 553 Comm: vfmgrd Not tainted 6.1.0-1-amd64 #1
[   61.0] RIP: 0010:{where}
[   61.0] Kernel panic - not syncing: Fatal exception in interrupt
"""
    assert panic.emulator_is_to_blame(entry.format(where="entry_SYSCALL_64+0x0/0x29"))
    assert not panic.emulator_is_to_blame(entry.format(where="entry_SYSCALL_64+0x1c/0x29"))
    assert not panic.emulator_is_to_blame(entry.format(where="igb_disable_sriov+0x0/0x40"))
    other = entry.replace("traps: PANIC: double fault", "BUG: unable to handle page fault")
    assert not panic.emulator_is_to_blame(other.format(where="entry_SYSCALL_64+0x0/0x29"))


def test_a_panic_with_a_module_of_ours_is_a_failure(monkeypatch):
    monkeypatch.setattr(panic, "OUR_MODULES", ("vfmgr_lab_pf",))
    console = STACK.format(comm="swapper/0", symbol="probe")
    ours = STACK.format(comm="swapper/0", symbol="probe [vfmgr_lab_pf]")
    assert panic.emulator_is_to_blame(console)
    assert not panic.emulator_is_to_blame(ours)


def test_a_panic_of_what_works_at_our_traffic_is_a_failure():
    rxe = STACK.format(comm="swapper/1", symbol="rxe_completer")
    assert panic.emulator_is_to_blame(rxe)
    assert not panic.emulator_is_to_blame(rxe.replace("/0x40\n", "/0x40 [rdma_rxe]\n"))
    # The module is loaded, but not on the stack.
    linked = "[   61.0] Modules linked in: rdma_rxe ib_uverbs ib_core siw igb\n"
    assert panic.emulator_is_to_blame(linked + rxe)


def test_no_panic_is_no_excuse():
    assert not panic.emulator_is_to_blame("[ 1.0] systemd[1]: Started.\n")
    assert panic.panic_text("all is well") is None


def test_kernel_complaints_leave_out_what_slow_emulation_causes():
    console = ("watchdog: BUG: soft lockup - CPU#0 stuck for 22s!\n"
               "BUG: kernel NULL pointer dereference, address: 0\n")
    assert panic.kernel_complaints(console) == [console.splitlines()[1]]
    assert panic.troubles(console + "all is well\n") == console.splitlines()


def test_a_hang_is_judged_by_the_panic_that_an_nmi_makes_of_it():
    console = """[   61.0] NMI: Not continuing
[   61.0] Kernel panic - not syncing: NMI: Not continuing
[   61.0] CPU: 0 PID: 0 Comm: {comm} Not tainted 6.1.0-1-amd64 #1
[   61.0] RIP: 0010:native_safe_halt+0xb/0x10
"""
    assert panic.emulator_is_to_blame(console.format(comm="swapper/0"))
    assert not panic.emulator_is_to_blame(console.format(comm="vfmgrd"))


def test_the_command_line_is_what_grub_would_make():
    text = ('# comment\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\n'
            'GRUB_CMDLINE_LINUX="intel_iommu=on"\n'
            'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX pci=realloc"\n')
    assert disk.grub_command_line(text) == "intel_iommu=on pci=realloc quiet splash"
    assert disk.grub_command_line("GRUB_CMDLINE_LINUX=''\n") == ""


PAGE = """# A guide

Text.

## One step

<!-- ends with 0, 2: it may warn -->
```sh vm
# no heading
true
```

<!-- not run: there is no such
machine -->
```sh
false
```
"""


def test_a_page_has_blocks():
    one, other = pages.blocks_in(PAGE, "PAGE.md")
    assert (one.heading, one.language, one.where) == ("One step", "sh", "vm")
    assert (one.text, one.why, one.ends) == ("# no heading\ntrue\n", "", {0, 2})
    assert (other.where, other.why, other.ends) == ("", "there is no such\nmachine", {0})


@pytest.mark.parametrize("more, said", [
    ("\n    vfctl pf list\n", "PAGE.md:19: an indented block"),
    ("\n<!-- not run: a mark alone -->\ntext\n", "a mark that stands before no block"),
    ("\n<!-- ends with 1: a mark alone -->\n\n```sh\ntrue\n```\n", "before no block"),
    ("```sh\nno end\n", "a fence that begins or ends no block")])
def test_what_no_test_would_type_is_refused(more, said):
    with pytest.raises(AssertionError, match=said):
        pages.blocks_in(PAGE + more, "PAGE.md")


@pytest.mark.parametrize("status, well", [(0, True), (2, True), (1, False), (255, False)])
def test_a_block_that_ends_as_the_page_does_not_say_is_a_failure(status, well):
    lab = scenario.Lab(None, "guide")
    lab.host = SimpleNamespace(run=lambda command, **_: Result(command, status, "", "why"))
    block, _ = pages.blocks_in(PAGE, "PAGE.md")
    assert guide.typed(lab, block) == well
    assert bool(lab.failures) == (not well) and lab.counts == {"typed": 1}


def test_a_block_that_is_left_out_is_counted_with_its_reason(capsys):
    lab = scenario.Lab(None, "guide")
    assert [guide.left_out(lab, block) for block in pages.blocks_in(PAGE, "")] == [False, True]
    assert lab.counts == {"left out": 1}
    assert "One step: not run: there is no such machine" in capsys.readouterr().out


def test_a_hash_follows_content_name_and_mode(tmp_path):
    (tmp_path / "a").write_text("one")
    first = parts.hash_of("1", tmp_path)
    assert parts.hash_of("1", tmp_path) == first
    assert parts.hash_of("2", tmp_path) != first
    (tmp_path / "a").chmod(0o755)
    executable = parts.hash_of("1", tmp_path)
    (tmp_path / "a").write_text("two")
    changed = parts.hash_of("1", tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({first, executable, changed, parts.hash_of("1", tmp_path)}) == 4


class BusyVmsHost:
    """A host with a VM whose agent answers those who wait for it, or never."""

    vm_cpus = "1-2"

    def __init__(self, answers):
        self.answers = answers

    def run(self, command, **_):
        if "vm-exec" not in command:
            return Result(command, 0, "7\n" if "dumpxml" in command else "the VM's last words", "")
        if self.answers and "--wait" in command:
            return Result(command, 0, "done", "")
        return Result(command, 255, "", "vm-exec: no agent at CID 7: Connection timed out")


def test_a_busy_vm_is_waited_for():
    assert VM(BusyVmsHost(answers=True), "busy").run("true").stdout == "done"


def test_a_silent_vm_is_a_failure_that_shows_its_console():
    silent = VM(BusyVmsHost(answers=False), "silent").run("true", check=False)
    assert silent.status == 255
    assert "no agent" in silent.stderr and "the VM's last words" in silent.stderr


def test_a_lock_has_one_holder(tmp_path):
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert first.try_take()
    assert not second.try_take()
    first.release()
    assert second.try_take()
    second.release()


def test_an_unknown_command_or_scenario_is_a_usage_error():
    for arguments in (["nosuch"], ["run", "nosuch"], []):
        done = subprocess.run([str(LAB / "lab"), *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2, done.stderr
        assert done.stderr


def test_every_scenario_says_what_it_is():
    done = subprocess.run([str(LAB / "lab"), "scenarios"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    for line in done.stdout.splitlines():
        assert len(line.split(None, 1)) == 2, line


def test_scenarios_wait_for_events():
    for path in (LAB / "scenarios").glob("*.py"):
        assert "sleep(" not in path.read_text(), f"{path.name} sleeps: use wait_for"


def test_trees_take_turns_in_all_lines():
    there = plan.turns()
    chosen = [plan.choice_of(f"{number:x}", there) for number in range(len(there))]
    assert there and chosen == there
    assert plan.choice_of("", there) == there[0]  # for an unpacked archive


def test_trees_take_turns_in_all_slices_and_each_sliced_scenario_as_often():
    most = max(plan.slices(name) for name in plan.sliced())
    chosen = [plan.slice_of(f"{number:x}") for number in range(len(plan.sliced()) * most)]
    assert {plan.split(one)[0] for one in chosen} == set(plan.sliced())
    assert len(set(chosen)) == sum(plan.slices(name) for name in plan.sliced())
    assert set(chosen) <= set(plan.all_slices()) and "kill-each" not in plan.sliced()
    for name in plan.sliced():
        assert sum(plan.split(one)[0] == name for one in chosen) == most
    assert plan.slice_of("") == plan.sliced()[0] + "/0"  # for an unpacked archive


def test_a_slice_is_named_after_its_scenario():
    name, number = plan.split(plan.all_slices()[-1])
    assert number < plan.slices(name)
    assert plan.split("boot") == ("boot", None)
    assert plan.unknown(["boot", f"{name}/{number}", f"{name}/999", "no-such"]) == \
        [f"{name}/999", "no-such"]


def test_what_a_run_without_names_runs():
    names = plan.names(with_long=False)
    assert names[:len(plan.core())] == plan.core()
    assert names[len(plan.core()):-1] in plan.turns() and names[-1] in plan.all_slices()
    assert set(plan.core()) < set(plan.names(with_long=True))


def test_a_scenario_says_which_nic_is_in_which_slot():
    settings = {"run": "r", "name": "n", "cpus": 2, "iommu": True, "ssh_port": 1, "api_port": 2}

    def nics(**more):
        words = qemu.arguments({**settings, **more}, "")
        return [word for word in words if word.startswith("igb,")]
    assert nics() == ["igb,id=igb,bus=port1,netdev=wire,mac=" + qemu.PF_MAC]
    assert nics(slots={"igb2": "port1", "igb": "port2"}) == [
        "igb,id=igb2,bus=port1,netdev=wire2,mac=" + qemu.SECOND_MAC,
        "igb,id=igb,bus=port2,netdev=wire,mac=" + qemu.PF_MAC]


def test_what_a_scenario_may_keep_is_no_dirt_of_the_next(monkeypatch):
    found = {("PF", "0000:01:00.0")}
    monkeypatch.setattr(runner, "Observe",
                        lambda host: SimpleNamespace(clean_state=lambda: set(found)))
    one = runner.Runner(options=None)
    one.machine = SimpleNamespace(console_text=lambda: "")
    one.clean = set(found)
    found.add(("PF", "0000:05:00.0"))

    def after(*kept):
        return one.after(SimpleNamespace(remove_vms=lambda: None, host=None, kept=set(kept)), [])
    assert after() == ["the host is not clean, left behind: PF 0000:05:00.0"]
    assert after(("PF", "0000:05:00.0")) == []
    assert after() == []


def test_a_host_beside_another_has_less_memory_and_macs_of_its_own():
    settings = {"run": "r", "name": "n", "cpus": 2, "iommu": True, "ssh_port": 1, "api_port": 2,
                "memory": "3G", "macs": second_host.MACS}
    words = qemu.arguments(settings, "")
    assert words[words.index("-m") + 1] == "3G"
    assert "igb,id=igb,bus=port1,netdev=wire,mac=" + second_host.MACS["igb"] in words
    assert not {qemu.PF_MAC, qemu.SECOND_MAC} & set(second_host.MACS.values())


def test_the_two_hosts_share_no_identity():
    (a_mac, a_last, a_address, a_end), (b_mac, b_last, b_address, b_end) = two_hosts.PARTS
    assert a_mac < a_last < b_mac < b_last
    numbers = [int(address.rpartition(".")[2]) for address in (a_address, a_end, b_address, b_end)]
    assert numbers == sorted(set(numbers))


FRAME = bytes.fromhex("ffffffffffff 5254000a0001") + b"%s payload"
TAGGED, UNTAGGED = FRAME % b"\x81\x00\x00\x64", FRAME % b"\x08\x06"


def test_a_stream_of_frames_comes_in_pieces():
    stream = b"".join(hub.LENGTH.pack(len(frame)) + frame for frame in (TAGGED, UNTAGGED))
    for cut in range(len(stream) + 1):
        first, rest = hub.frames_of(stream[:cut])
        last, rest = hub.frames_of(rest + stream[cut:])
        assert (first + last, rest) == ([TAGGED, UNTAGGED], b"")


def test_a_frame_says_who_sent_it_and_in_which_vlan():
    assert hub.sender_of(TAGGED) == ("52:54:00:0a:00:01", 100)
    assert hub.sender_of(UNTAGGED) == ("52:54:00:0a:00:01", 0)
    assert hub.sender_of(b"short") == ("", 0)


def test_a_hub_repeats_frames_to_all_others_and_counts_them(tmp_path):
    wire = socket.socket(socket.AF_UNIX)
    wire.bind(str(tmp_path / "wire"))
    wire.listen(1)
    with hub.Hub({"a": tmp_path / "wire"}, listen=tmp_path / "hub") as one:
        host, _ = wire.accept()
        sent = hub.LENGTH.pack(len(TAGGED)) + TAGGED
        machines = []
        for _ in range(2):  # a machine is there once the others have received from it
            machines.append(socket.socket(socket.AF_UNIX))
            machines[-1].settimeout(10)
            machines[-1].connect(str(tmp_path / "hub"))
            machines[-1].sendall(sent)
            assert [other.recv(1000) for other in (host, *machines[:-1])] == [sent] * len(machines)
        host.sendall(sent)
        assert [machine.recv(1000) for machine in machines] == [sent, sent]
        assert one.sent("52:54:00:0a:00:01", 100) == {
            "machine1": len(TAGGED), "machine2": len(TAGGED), "a": len(TAGGED)}
        assert one.sent("52:54:00:0a:00:01", 5) == {}
        host.close()  # its machine restarts: the hub connects again
        again, _ = wire.accept()
        machines[0].sendall(sent)
        assert again.recv(1000) == sent and one.lost == 0

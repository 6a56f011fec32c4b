# SPDX-License-Identifier: Apache-2.0
"""The checker on what clients read, on what is left when all is healed, and as a program."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checker  # noqa: E402
import history as histories  # noqa: E402
from story import MAC, NEXT, SECOND, VF, VM, Story, attached, item, reserved  # noqa: E402

# Reads.

def test_a_read_shows_what_was_acknowledged_long_before():
    assert attached().read(10, 11, item()).rules() == []
    story = attached().read(10, 11)
    assert story.rules() == ["old_read"]
    assert "does not show attach a1" in story.told()


@pytest.mark.parametrize("when", [(3.9, 4.5), (1, 2.5)])
def test_a_read_may_be_a_little_old(when):
    assert attached().read(*when).rules() == []


def test_a_stale_part_is_as_old_as_it_says():
    assert attached().read(10, 11, stale={"h1": 3.9}).rules() == []
    assert attached().read(10, 11, stale={"h1": 5}).rules() == ["old_read"]
    assert attached().read(10, 11, stale={"h1": None}).rules() == []
    assert attached().read(10, 11, stale={"h2": 3}).rules() == ["old_read"]


def test_how_old_a_stale_part_is_nobody_knows_when_a_clock_jumped():
    def story(**fault):
        return attached().read(10, 11, stale={"h1": 5}).line(of="fleet1", evidence="seen", **fault)
    assert story(fault="clock", begun_at=8, ended_at=9).rules() == []
    assert story(fault="clock", begun_at=12, ended_at=13).rules() == ["old_read"]
    assert story(fault="kill", begun_at=8, ended_at=9).rules() == ["old_read"]


def test_a_read_may_lack_what_is_being_detached():
    assert attached().detach(10.5, None).read(10, 11).rules() == []
    assert attached().detach(9, 9.5, "unknown").read(10, 11).rules() == []


def test_a_read_does_not_show_what_was_detached_long_before():
    story = attached().detach(3, 4).saw(3.5)
    assert story.read(5.9, 6.5, item()).rules() == []
    assert story.read(7, 8, item()).rules() == ["old_read"]
    assert story.attach(7.5, None, "unknown").rules() == []
    other = attached().attach(1, 2, vf=NEXT, mac=SECOND).saw(1.6, vf0=(VM, MAC), vf1=(VM, SECOND))
    other.detach(3, 4).saw(3.5, vf1=(VM, SECOND))
    assert other.read(7, 8, item(vf=NEXT)).rules() == []
    assert other.read(7, 8, item(), item(vf=NEXT)).rules() == ["old_read"]


def test_a_read_may_show_what_was_attached_again():
    story = attached().detach(3, 4).saw(3.5).attach(5, 6).saw(5.5, vf0=(VM, MAC))
    assert story.read(10, 11, item()).rules() == []


def test_a_read_does_not_show_what_a_move_or_a_drain_took_away():
    story = attached().act("drain", 3, 4, "ok", host="h1").saw(3.5)
    assert story.read(7, 8).rules() == []
    assert story.read(7, 8, item()).rules() == ["old_read"]


def test_a_read_of_one_host_says_nothing_of_others():
    story = attached()
    story.read(10, 11).lines[-1]["hosts"] = ["h2"]
    assert story.rules() == []


def test_reads_of_reservations():
    def story():
        return Story().act(**reserved())
    shown = {"reservation": "r1", "host": "h1"}
    assert story().read(9, 10, shown, what="reservations").rules() == []
    assert story().read(9, 10, what="reservations").rules() == ["old_read"]
    assert story().read(2, 10, what="reservations").rules() == []
    assert story().act("release", 9.5, None, reservation="r1").read(
        9, 10, what="reservations").rules() == []
    assert story().act("release", 11, None, reservation="r1").read(
        9, 10, what="reservations").rules() == ["old_read"]
    assert story().act("release", 2, 3, "ok", reservation="r2").read(
        9, 10, what="reservations").rules() == ["old_read"]
    assert Story().act(**reserved(expires_at=9.5)).read(
        9, 10, what="reservations").rules() == []
    assert story().line(fault="clock", of="fleet1", begun_at=5, ended_at=6, evidence="+1 h").read(
        9, 10, what="reservations").rules() == []
    twice = story().act(**reserved(begin=4, end=None))
    assert twice.read(9, 10, what="reservations").rules() == []
    maybe = story().act("release", 2, None, reservation="r1")
    assert maybe.read(9, 10, shown, what="reservations").rules() == []
    assert story().act("release", 2, 8.5, "ok", reservation="r1").read(
        9, 10, shown, what="reservations").rules() == []
    ended = story().act("release", 2, 3, "ok", reservation="r1")
    assert ended.read(9, 10, what="reservations").rules() == []
    assert ended.read(9, 10, shown, what="reservations").rules() == ["old_read"]
    late = Story().act(**reserved(end=None)).act("release", 2, 3, "ok", reservation="r1")
    assert late.read(9, 10, shown, what="reservations").rules() == []


# After healing.

def healed(story, **more):
    return story.line(final=True, at=20, **more)


def test_nothing_is_left():
    story = healed(attached(), operations=[], hosts={"h1": "active"}, attachments=[item()],
                   claims=[{"host": "h1", "mac": MAC}])
    assert story.rules() == []


@pytest.mark.parametrize("left", [
    {"operations": ["h1 01hkz"]}, {"drains": ["d1"]}, {"moves": ["m1"]},
    {"hosts": {"h1": "quarantined"}}, {"attachments": []},
    {"attachments": [item(), item(vf=NEXT)]}, {"claims": [{"host": "h2", "mac": MAC}]}])
def test_what_is_left_is_seen(left):
    assert healed(attached(), **left).rules() == ["left_over"]


def test_a_vf_keeps_no_identity():
    story = attached().detach(3, 4).saw(3.5, vf0=(None, MAC))
    assert healed(story).rules() == ["left_over"]
    assert healed(attached().detach(3, 4).saw(3.5, vf0=(None, "02:00:00:00:00:00"))).rules() == []


def test_a_fault_has_to_happen():
    kill = {"fault": "kill", "of": "h1", "begun_at": 1, "ended_at": 2}
    assert Story().line(**kill, evidence="signal 9").rules() == []
    assert Story().line(**kill, evidence="").rules() == ["no_fault"]


# The program.

def test_the_program_reads_files_whose_last_line_is_cut(tmp_path, capsys, monkeypatch):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text("".join(json.dumps(line) + "\n" for line in attached().lines) + '{"host": "h')
    bad.write_text("".join(json.dumps(line) + "\n" for line in attached().saw(3).lines))
    for path, status in ((good, 0), (bad, 1)):
        monkeypatch.setattr(sys, "argv", ["checker.py", str(path)])
        assert checker.main() == status
    assert "freed_by_nobody at 3.000" in capsys.readouterr().out


def test_a_long_history_is_judged_in_seconds():
    story, time = Story(), 1.0
    for turn in range(200):
        for number in range(4):
            vm = f"{number:08d}-1111-1111-1111-111111111111"
            host, vf, mac = f"h{number}", f"0000:01:00.0/{turn % 8}", f"52:54:00:10:00:0{number}"
            story.attach(time, time + 1, vm=vm, host=host, vf=vf, mac=mac)
            story.saw(time + 0.5, host, **{f"vf{turn % 8}": (vm, mac)})
            story.detach(time + 2, time + 3, vm=vm, host=host, vf=vf).saw(time + 2.5, host)
        story.read(time + 1.1, time + 1.2)
        time += 4
    assert len(histories.History(story.lines).acts) == 1600
    assert story.rules() == []


def test_a_host_that_was_cut_off_is_stale_only_after_its_silence():
    def rules(fault, at):
        return attached().line(fault=fault, of="h1", begun_at=1.8, ended_at=9,
                               evidence="7 packets").read(at, at + 1).rules()
    assert rules("cut-host", 30) == []
    assert rules("cut-host", 90) == rules("kill-host", 30) == ["old_read"]

# SPDX-License-Identifier: Apache-2.0
"""The checker on histories made by hand: wrong ones, and ones that are right but look wrong."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from story import GUID, MAC, NEXT, OTHER, SECOND, VF, VM, Story, attached, reserved  # noqa: E402

# Two holders.

def test_two_hosts_with_a_mac_are_seen():
    story = attached().attach(3, 4, vm=OTHER, host="h2").saw(3.5, "h2", vf0=(OTHER, MAC))
    assert story.rules() == ["two_holders"]
    assert f"MAC {MAC} is in VF {VF} of h1 and in VF {VF} of h2" in story.told()


def test_a_mac_on_a_vf_without_a_vm_has_a_holder():
    assert attached().saw(3, "h2", vf1=(None, MAC)).rules() == ["two_holders"]


def test_two_holders_of_a_guid_are_seen():
    story = Story().attach(1, 2, guid=GUID).saw(1.5, vf0=(VM, MAC, GUID))
    story.attach(3, 4, vm=OTHER, host="h2", mac=SECOND).saw(3.5, "h2", vf0=(OTHER, SECOND, GUID))
    assert story.rules() == ["two_holders"]


@pytest.mark.parametrize("network, rules", [("lab", ["two_holders"]), ("train", [])])
def test_an_address_has_one_holder_in_a_network(network, rules):
    story = attached(address="10.0.0.7", network="lab").attach(
        3, 4, vm=OTHER, host="h2", mac=SECOND, address="10.0.0.7", network=network)
    assert story.saw(3.5, "h2", vf0=(OTHER, SECOND)).rules() == rules


def test_a_mac_that_cards_have_from_the_start_is_nobodys():
    story = Story().saw(0.1, "h1", vf1=(None, "02:00:00:00:00:00"))
    assert story.saw(0.2, "h2", vf1=(None, "02:00:00:00:00:00")).rules() == []


def test_a_mac_may_be_given_again_once_it_is_free():
    story = attached().detach(3, 4).saw(3.5).attach(4.1, 5, vm=OTHER, host="h2")
    assert story.saw(4.5, "h2", vf0=(OTHER, MAC)).rules() == []


def test_a_mac_given_again_before_the_first_host_let_go_is_seen_within_a_moment():
    story = attached().detach(3, 4).attach(3, 5, vm=OTHER, host="h2")
    story.saw(3.5, "h2", vf0=(OTHER, MAC)).saw(3.501)
    assert story.rules() == ["two_holders"]


# A VF given twice.

def test_a_vf_in_two_vms_is_seen():
    story = attached().attach(3, 4, vm=OTHER)
    story.line(host="h1", at=3.5, vfs=[{"vf": VF, "mac": MAC, "vms": [VM, OTHER]}])
    assert story.rules() == ["given_twice"]


def test_two_reservations_of_a_vf_are_seen():
    story = Story().act(**reserved()).act(**reserved("r2", 3, begin=2))
    assert story.rules() == ["given_twice", "given_twice"]


@pytest.mark.parametrize("release", [dict(outcome="ok", end=1.8), dict(end=None),
                                     dict(outcome="unknown", end=5)])
def test_a_release_that_may_be_done_frees(release):
    story = Story().act(**reserved()).act("release", 1.5, reservation="r1", **release)
    assert story.act(**reserved("r2", 3, begin=2)).rules() == []


def test_an_expired_reservation_is_free():
    story = Story().act(**reserved(expires_at=1.9))
    assert story.act(**reserved("r2", 3, begin=2)).rules() == []


def test_a_reservation_may_expire_when_a_clock_jumps():
    story = Story().act(**reserved(expires_at=100)).act(**reserved("r2", 3, begin=2))
    assert story.line(fault="clock", of="fleet1", begun_at=1.5, ended_at=1.6,
                      evidence="+1 h").rules() == []


def test_a_reservation_of_unknown_outcome_accuses_nobody():
    story = Story().act(**reserved(outcome="unknown"))
    assert story.act(**reserved("r2", 3, begin=2)).rules() == []


def test_a_reserved_vf_in_a_vm_of_another_is_seen():
    assert attached().act(**reserved(begin=0.1, end=0.2)).rules() == ["given_twice"]


def test_a_vm_that_uses_the_reservation_may_have_its_vf():
    assert attached(reservation="r1").act(**reserved(begin=0.1, end=0.2)).rules() == []


# Lost.

def test_an_acknowledged_attach_must_be_there():
    story = Story().attach(1, 2)
    assert story.rules() == ["lost"]
    assert "is not in VM" in story.told()


def test_it_must_have_the_identity_that_was_acknowledged():
    assert Story().attach(1, 2).saw(1.5, vf0=(VM, SECOND)).rules() == ["lost"]


def test_a_detach_at_the_same_time_may_come_first_or_last():
    assert Story().attach(1, 2).detach(1.2, 1.9).saw(1.5, vf0=(VM, MAC)).saw(1.6).rules() == []


def test_a_detach_long_before_or_of_another_vm_excuses_nothing():
    assert Story().detach(0.1, 0.2).attach(1, 2).rules() == ["lost"]
    assert Story().attach(1, 2).detach(1.2, 1.9, vm=OTHER).rules() == ["lost"]


def test_an_acknowledged_detach_must_be_done():
    assert attached().detach(3, 4).rules() == ["lost"]


def test_a_detach_may_be_followed_by_an_attach_of_the_same():
    story = attached().detach(3, 4).saw(3.5).attach(3.6, 3.9).saw(3.7, vf0=(VM, MAC))
    assert story.rules() == []


def moved(mac=MAC, left=True, given=MAC, **more):
    gives = [{"host": "h2", "vf": VF, "mac": given}]
    story = attached().act("move", 3, 5, "ok", vm=VM, host="h1", to="h2", gives=gives, **more)
    if left:
        story.saw(3.5)
    return story.saw(4, "h2", vf0=(VM, mac))


def test_a_move_keeps_the_identity():
    assert moved().rules() == []
    for given in (MAC, None):
        assert set(moved(mac=SECOND, given=given).rules()) == {"lost"}


def test_a_move_leaves():
    assert moved(left=False).rules() == ["two_holders", "lost"]


def test_a_move_of_unknown_outcome_may_be_anywhere():
    for end in (None, 5):
        begun = attached().act("move", 3, end, vm=VM, host="h1", to="h2")
        assert begun.rules() == []
        assert begun.saw(3.5).rules() == []
        assert begun.saw(9, "h2", vf0=(VM, MAC)).rules() == []


def test_a_move_beside_another_act_may_end_with_other_identities():
    for begin, rules in ((3, []), (6, ["lost"])):
        story = moved(mac=SECOND, given=None).act("attach", begin, None, vm=VM)
        assert story.rules() == rules


def test_a_move_whose_origin_is_unknown_may_end_where_the_vm_was():
    gives = [{"host": "h1", "vf": NEXT, "mac": SECOND}]
    story = attached().act("move", 3, 5, "ok", vm=VM, to="h1", gives=gives)
    assert story.saw(4, vf0=(VM, MAC), vf1=(VM, SECOND)).rules() == []


def test_a_refused_move_is_undone():
    story = attached().act("move", 3, 5, "refused", vm=VM, host="h1", to="h2").saw(3.5)
    assert story.rules() == ["refused_yet_done"]
    assert story.saw(4.5, vf0=(VM, MAC)).rules() == []


def test_a_drained_host_has_no_vm():
    story = attached().act("drain", 3, 4, "ok", host="h1")
    assert story.rules() == ["lost"]
    assert story.saw(3.5).saw(3.7, "h2", vf0=(VM, MAC)).rules() == []


# Nobody asked for it.

def test_silence_frees_nothing():
    story = attached().saw(3)
    assert story.rules() == ["freed_by_nobody"]
    assert f"VF {VF} of h1 in VM {VM} with MAC {MAC}: nobody ended it" in story.told()


def test_a_detach_of_another_vf_explains_nothing():
    story = attached().detach(2.5, 3.5, "unknown", vf=NEXT).saw(3)
    assert story.rules() == ["freed_by_nobody"]


@pytest.mark.parametrize("end", [None, 2.6])
def test_a_detach_whose_answer_was_lost_may_come_late(end):
    assert attached().detach(2.5, end, "unknown").saw(50).rules() == []


def test_a_refused_detach_must_not_be_done():
    story = attached().detach(2.5, 3.5, "refused").saw(3)
    assert story.rules() == ["refused_yet_done"]
    assert story.saw(3.2, vf0=(VM, MAC)).rules() == []


def test_a_detach_does_not_explain_what_came_before_it_or_after_its_answer():
    assert attached().saw(2.4).detach(2.5, 2.6).rules() == ["freed_by_nobody"]
    assert attached().detach(2.5, 2.6, "refused").saw(3).rules() == ["freed_by_nobody"]


def test_a_host_without_power_frees_nothing_and_has_it_again():
    assert attached().saw(3, off=True).saw(5, vf0=(VM, MAC)).rules() == []
    assert attached().saw(3, off=True).saw(5, vf0=(VM, SECOND)).rules() == ["taken_by_nobody"]


def test_nobody_takes_a_vf_unasked():
    assert Story().saw(1, vf0=(VM, MAC)).rules() == ["taken_by_nobody"]
    assert Story().attach(2, 3, outcome="refused").saw(1, vf0=(VM, MAC)).saw(2).rules() == [
        "taken_by_nobody"]


def test_what_was_there_before_the_history_needs_no_act():
    story = Story()
    story.lines = [{"host": "h1", "at": 0, "vfs": [{"vf": VF, "mac": MAC, "vms": [VM]}]}]
    assert story.rules() == []


@pytest.mark.parametrize("outcome, rules", [("unknown", []), ("refused", ["refused_yet_done"])])
def test_an_attach_without_acknowledgement(outcome, rules):
    story = Story().act("attach", 1, 2, outcome, vm=VM).saw(1.5, vf0=(VM, MAC))
    assert story.rules() == rules
    assert story.saw(1.9).rules() == []


def test_one_request_takes_one_vf():
    story = Story().act("attach", 1, 2, vm=VM).saw(1.5, vf0=(VM, MAC), vf1=(VM, SECOND))
    assert story.rules() == ["taken_by_nobody"]
    assert "has 2 VFs, more than anybody asked for" in story.told()
    assert story.act("attach", 1, 2, vm=VM).rules() == []


def test_a_retried_request_that_was_done_twice_is_seen():
    story = attached().saw(1.8, "h2", vf0=(VM, SECOND))
    assert story.rules() == ["taken_by_nobody"]


def test_a_request_may_try_one_place_after_the_other():
    story = Story().attach(1, 3, host="h2").saw(1.5, vf1=(VM, MAC)).saw(1.7)
    assert story.saw(2, "h2", vf0=(VM, MAC)).rules() == []

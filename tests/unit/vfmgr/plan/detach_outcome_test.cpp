// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

Time at(std::int64_t milliseconds) {
    return Time(std::chrono::milliseconds(milliseconds));
}

// vm1's attachment of VF 2, with a MAC and a VLAN.
Attachment attachment() {
    Attachment ended;
    ended.id = "aaaa0001";
    ended.vm = "vm1";
    ended.vf = {pf_address, 2};
    ended.settings.mac = mac(7);
    ended.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    ended.baseline.mac = MacAddress{};
    ended.baseline.vlan = Vlan{};
    ended.created_at = at(1000);
    ended.operation = "attaching";
    ended.requested_by = "token:9f86d081";
    return ended;
}

// Notes of a detach that did all of its steps.
DetachNotes noted() {
    DetachNotes notes;
    notes.detached = {at(5000), "detaching", "uid:0"};
    notes.before.mac = mac(7);
    notes.before.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    notes.before.spoofchk = true;
    notes.reset_done_at = at(6000);
    return notes;
}

struct After {
    HostView view = host();
    PfState& pf = view.kernel.pfs.at(pf_address);
    VfState& vf = pf.vfs.at(2);
    DetachNotes notes = noted();
    [[nodiscard]] DetachOutcome see(Attachment const& ended = attachment()) const {
        return detach_outcome(view, ended, notes);
    }
    [[nodiscard]] std::string only_residue(Attachment const& ended = attachment()) const {
        auto const [residue, certificate] = see(ended);
        EXPECT_FALSE(certificate);
        return residue.size() == 1 ? residue[0] : std::to_string(residue.size()) + " sentences";
    }
};

TEST(DetachOutcome, CertifiesAVfThatIsAsItWas) {
    After after;
    after.pf.observed_at = at(7000);
    auto const [residue, certificate] = after.see();
    EXPECT_THAT(residue, IsEmpty());
    Certificate expected{
        {pf_address, 2},   after.vf.pci, "aaaa0001", "vm1",
        after.vf.settings, std::nullopt, at(7000),   {at(1000), "attaching", "token:9f86d081"}};
    expected.detached = {at(5000), "detaching", "uid:0"};
    expected.reset = VfReset{ResetMethod::flr, at(6000)};
    expected.restored.was.mac = mac(7);
    expected.restored.was.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    expected.restored.is.mac = MacAddress{};
    expected.restored.is.vlan = Vlan{};
    expected.rotated.mac = Rotated<MacAddress>{mac(7), MacAddress{}};
    EXPECT_EQ(certificate, expected) << nlohmann::json(*certificate).dump(1);
}

// What the driver reported counts, not what the attachment requested.
TEST(DetachOutcome, TellsWhatWasSeenBeforeTheRelease) {
    After after;
    after.notes.before.mac = mac(8);
    after.notes.before.vlan.reset();
    auto const certificate = *after.see().certificate;
    EXPECT_EQ(certificate.restored.was.mac, mac(8)) << "somebody had changed it";
    EXPECT_EQ(certificate.restored.was.vlan, std::nullopt) << "the driver did not tell";
    EXPECT_EQ(certificate.restored.was.spoofchk, std::nullopt) << "it was not attached";
    EXPECT_EQ(certificate.rotated.mac->was, mac(7)) << "which the tenant had been given";
}

TEST(DetachOutcome, OnlyAResetVfIsCertified) {
    After after;
    after.notes.reset_done_at.reset();
    EXPECT_EQ(after.only_residue(),
              "VF 0000:01:00.0/2 was not reset: it did not exist when the detach began");
}

TEST(DetachOutcome, CountersAreThoseOfTheRelease) {
    After after;
    EXPECT_FALSE(after.see().certificate->counters) << "the driver tells none";
    after.notes.counters.emplace().rx_packets = 7;
    EXPECT_EQ(after.see().certificate->counters, after.notes.counters);
}

// An InfiniBand VF has GUIDs, and no MAC to report.
TEST(DetachOutcome, TellsTheGuidsThatAreNoMore) {
    After after;
    auto ended = attachment();
    ended.settings.mac.reset();
    ended.baseline.mac.reset();
    ended.settings.node_guid = Guid{1};
    ended.settings.port_guid = Guid{2};
    ended.baseline.node_guid = Guid{};
    after.vf.settings.node_guid = Guid{};
    auto const rotated = after.see(ended).certificate->rotated;
    EXPECT_EQ(rotated.mac, std::nullopt) << "the attachment gave none";
    EXPECT_EQ(rotated.node_guid, (Rotated<Guid>{Guid{1}, Guid{}}));
    EXPECT_EQ(rotated.port_guid, (Rotated<Guid>{Guid{2}, std::nullopt})) << "it is not told";
}

// The driver reported nothing before the attachment, so there was nothing to restore.
TEST(DetachOutcome, AnAddressOfTheTenantsIsNeverCertified) {
    After after;
    auto ended = attachment();
    ended.baseline.mac.reset();
    after.vf.settings.mac = mac(7);
    EXPECT_EQ(after.only_residue(ended),
              "VF 0000:01:00.0/2 still has the MAC 02:00:00:00:00:07 of VM vm1");
    after.vf.settings.mac = mac(9);
    EXPECT_TRUE(after.see(ended).certificate);
    ended.settings.node_guid = ended.settings.port_guid = Guid{1};
    after.vf.settings.node_guid = Guid{1};
    EXPECT_EQ(after.only_residue(ended),
              "VF 0000:01:00.0/2 still has the node GUID 00:00:00:00:00:00:00:01 of VM vm1");
    after.vf.settings.node_guid.reset();
    after.vf.settings.port_guid = Guid{1};
    EXPECT_THAT(after.only_residue(ended), HasSubstr("still has the port GUID"));
}

// An admin set it before the attachment, and the attachment requested the same.
TEST(DetachOutcome, AnAddressThatTheVfHadBeforeStays) {
    After after;
    auto ended = attachment();
    ended.baseline.mac = after.vf.settings.mac = mac(7);
    auto const [residue, certificate] = after.see(ended);
    EXPECT_THAT(residue, IsEmpty());
    EXPECT_EQ(certificate->rotated.mac, std::nullopt);
}

TEST(DetachOutcome, NamesWhatIsStillSet) {
    After after;
    after.vf.settings.mac = mac(7);
    EXPECT_EQ(after.only_residue(),
              "still to do: configure on 0000:01:00.0: VF 2 (mac 00:00:00:00:00:00)");
}

TEST(DetachOutcome, WhatWasNeverAttachedIsNotLookedAt) {
    After after;
    after.vf.settings.trust = true;
    EXPECT_TRUE(after.see().certificate);
}

TEST(DetachOutcome, NamesWhoHoldsIt) {
    After after;
    after.vf.holders = {{812, "qemu-system-x86"}};
    EXPECT_THAT(after.only_residue(), HasSubstr("held open by qemu-system-x86 (pid 812)"));
}

TEST(DetachOutcome, AHostsDriverMayChooseAnAddressButNotTheAttachedOne) {
    After after;
    after.vf.settings.mac = mac(9);
    EXPECT_FALSE(after.see().certificate) << "nobody chose it";
    after.vf.driver = "vfio-pci";
    EXPECT_FALSE(after.see().certificate);
    after.vf.driver = "igbvf";
    EXPECT_TRUE(after.see().certificate);
    after.vf.settings.mac = mac(7);
    EXPECT_FALSE(after.see().certificate);
}

TEST(DetachOutcome, TheStandInForTheZeroMacIsZero) {
    After after;
    after.vf.settings.mac = MacAddress{{2, 0, 0, 0, 0, 0}};
    EXPECT_TRUE(after.see().certificate);
}

TEST(DetachOutcome, AVfThatIsGoneIsCleanUnlessItsGuidsReturn) {
    After after;
    auto ended = attachment();
    ended.vf.index = 9;
    EXPECT_THAT(after.see(ended).residue, IsEmpty());
    EXPECT_FALSE(after.see(ended).certificate);
    ended.baseline.node_guid = Guid{};
    EXPECT_THAT(after.only_residue(ended), HasSubstr("gets its GUIDs"));
}

TEST(DetachOutcome, NotSeenIsNotClean) {
    After after;
    after.pf.stale = true;
    after.pf.stale_reason = "the worker hangs";
    EXPECT_EQ(after.only_residue(), "VF 0000:01:00.0/2 can't be read: the worker hangs");
    after.view.kernel.pfs.clear();
    EXPECT_THAT(after.only_residue(), HasSubstr("its PF is gone"));
}

Event ended(EventKind kind) {
    Event event;
    event.kind = kind;
    event.pf = pf_address;
    event.vf = 2;
    event.attachment = "aaaa0001";
    event.vm = "vm1";
    return event;
}

struct Found {
    DesiredState desired;
    std::vector<Event> events;
    [[nodiscard]] Result<Certificate> find() const {
        return find_certificate(desired, events, "aaaa0001");
    }
    void expect_none(std::string const& detail, std::string const& remedy) const {
        auto const none = find();
        ASSERT_FALSE(none) << detail;
        EXPECT_EQ(none.error().problem, Problem::not_found);
        EXPECT_EQ(none.error().detail, detail);
        EXPECT_THAT(none.error().remedy, HasSubstr(remedy));
    }
};

TEST(FindCertificate, IsThatOfTheAttachmentsEnd) {
    Found found{{}, {ended(EventKind::detached), ended(EventKind::attached)}};
    found.events[0].certificate = After().see().certificate;
    EXPECT_EQ(found.find().value(), *found.events[0].certificate);
    found.events.insert(found.events.begin(), ended(EventKind::settled));
    EXPECT_TRUE(found.find()) << "what was drift then is over since";
}

TEST(FindCertificate, SaysThatTheAttachmentGoesOn) {
    Found found{{}, {ended(EventKind::attached)}};
    found.desired.attachments["aaaa0001"] = attachment();
    found.desired.attachments["aaaa0001"].state = AttachmentState::attached;
    found.expect_none(
        "attachment aaaa0001 has not ended (attached): VF 0000:01:00.0/2 is attached to VM vm1",
        "vfctl detach aaaa0001");
}

TEST(FindCertificate, SaysWhyTheVfIsInQuarantine) {
    Found found{{}, {ended(EventKind::quarantined), ended(EventKind::attached)}};
    found.desired.quarantine[attachment().vf] = {
        attachment().vf, attachment(), "not clean", {"trust is on", "held open"}, {}};
    found.expect_none(
        "VF 0000:01:00.0/2, last attached to VM vm1, is in quarantine: not clean: trust is on; "
        "held open",
        "vfctl vf lift-quarantine 0000:01:00.0 2");
    found.desired.quarantine.begin()->second.attachment.id = "bbbb0002";
    EXPECT_THAT(found.find().error().detail, testing::Not(HasSubstr("quarantine")))
        << "a later attachment's";
}

TEST(FindCertificate, SaysThatTheVfWasNoMore) {
    Found const found{{}, {ended(EventKind::detached), ended(EventKind::attached)}};
    found.expect_none(
        "attachment aaaa0001 of VM vm1 ended without a certificate: VF 0000:01:00.0/2 no longer "
        "existed",
        "vfctl vf history 0000:01:00.0 2");
}

TEST(FindCertificate, SaysThatTheAttachmentDidNotBegin) {
    Found const found{{}, {ended(EventKind::attach_failed)}};
    found.expect_none(
        "attachment aaaa0001 never began: it did not attach VF 0000:01:00.0/2 to VM vm1",
        "vfctl vf history 0000:01:00.0 2");
}

TEST(FindCertificate, SaysThatThereIsNoSuchAttachment) {
    Found{}.expect_none("there is no attachment aaaa0001 and no certificate for it",
                        "vfctl vf history");
}

}  // namespace
}  // namespace vfmgr

// SPDX-License-Identifier: Apache-2.0
// Stores as earlier vfmgrds left them (forms/form-N.sql, never regenerated): nothing in them is
// lost, and later features work.
#include "store_bench.hpp"
#include "tests/unit/repository.hpp"

namespace vfmgr {
namespace {

std::filesystem::path const forms = test::repository() / "tests/fixtures/store-forms";
constexpr auto running = "00000000000000000000000000000001";
constexpr auto failed = "00000000000000000000000000000002";

class FormsTest : public test::StoreTest, public testing::WithParamInterface<int> {
  protected:
    // Makes a closed store of that form.
    void restore(int form) const {
        std::ifstream file(forms / fmt::format("form-{}.sql", form));
        ASSERT_TRUE(file) << "no store of form " << form << " is kept";
        std::ostringstream sql;
        sql << file.rdbuf();
        execute(sql.str());
    }
    [[nodiscard]] int form() const {
        return SQLite::Database(path()).execAndGet("PRAGMA user_version").getInt();
    }
};

// Fails with a new form until a store of it is kept here and read below.
TEST_F(FormsTest, EachIsKept) {
    static_cast<void>(open());
    for (int each = 1; each <= form(); ++each)
        EXPECT_TRUE(exists(forms / fmt::format("form-{}.sql", each))) << each;
    EXPECT_EQ(form(), 19) << "say so in INSTANTIATE_TEST_SUITE_P";
}

TEST_P(FormsTest, LosesNoSpec) {
    restore(GetParam());
    auto const state = open().load().value();
    auto pf = test::desired_pf(3);
    pf.spec.vf_driver = "vfio-pci";
    EXPECT_EQ(state.pfs, (std::map<PciAddress, DesiredPf>{{test::pf, pf}}));
    EXPECT_EQ(state.networks, (Networks{{"train", {test::network(), 3}}}));
    EXPECT_EQ(state.pools.size(), GetParam() < 12 ? 0U : 1U);
    EXPECT_EQ(state.reservations.size(), GetParam() < 12 ? 0U : 1U);
    EXPECT_EQ(state.handed_out, GetParam() < 12 ? DesiredIdentities{} : test::handed_out());
    if (GetParam() >= 12) {
        EXPECT_EQ(state.pools.at("fast"), test::pool());
        EXPECT_EQ(state.reservations.at("job"), test::reservation());
    }
    Tenants tenants;
    if (GetParam() >= 16) tenants["blue"] = test::tenant();
    EXPECT_EQ(state.tenants, tenants);
    auto leaving = test::attachment(2);
    leaving.state = AttachmentState::detaching;
    EXPECT_EQ(state.attachments.size(), 2U);
    EXPECT_EQ(state.attachments.at("00000001"), test::attachment(1));
    EXPECT_EQ(state.attachments.at("00000002"), leaving);
    EXPECT_EQ(state.guest_keys.contains("00000001"), GetParam() >= 18);
    if (GetParam() >= 18) {
        GuestKeys const& keys = state.guest_keys.at("00000001");
        EXPECT_EQ(keys.token->sha256, "t1");
        EXPECT_EQ(keys.keys.at(0), (GuestSecret{"k1", test::at(1772452800000)}));
    }
    std::optional<FleetMembership> fleet;
    if (GetParam() >= 19) fleet = test::membership();
    EXPECT_EQ(state.fleet, fleet);
    EXPECT_EQ(state.restored_at.has_value(), GetParam() >= 19);
    std::map<PciAddress, FirmwareTries> tries;
    if (GetParam() >= 5) tries[test::pf] = test::firmware_tries();
    EXPECT_EQ(state.firmware_tries, tries);
    auto quarantine = test::quarantine(5);
    quarantine.reason = "the MAC could not be put back";  // as the vfmgrd of those forms wrote it
    EXPECT_EQ(state.quarantine, (std::map<VfId, Quarantine>{{{test::pf, 5}, quarantine}}));
    auto links = test::rdma_links();
    if (GetParam() < 5) links.clear();
    EXPECT_EQ(state.rdma_links, links);
    std::map<PciAddress, PfIdentity> identities;
    if (GetParam() >= 9) identities[test::pf] = test::identity();
    EXPECT_EQ(state.identities, identities);
}

TEST_P(FormsTest, LosesNoJournal) {
    restore(GetParam());
    auto store = open();
    auto const unfinished = store.unfinished().value();
    ASSERT_EQ(unfinished.size(), 1U);
    EXPECT_EQ(unfinished[0].operation.id, running);
    auto bound = test::record(1, BindVfs{test::pf, {2}, "vfio-pci"}, {BindVfs{test::pf, {2}, {}}});
    bound.state = StepState::done;
    ConfigureVfs const baseline{test::pf, {{2, test::attachment(2).baseline}}, {"trust"}};
    EXPECT_EQ(unfinished[0].records,
              (std::vector<JournalRecord>{bound, test::record(2, baseline)}));
    EXPECT_EQ(store.operation(failed).value(), test::operation(failed, OperationState::failed));
}

TEST_P(FormsTest, CanDoWhatCameLater) {
    restore(GetParam());
    auto store = open();
    EXPECT_TRUE(store.save_token({"id", "aa", "admin", "", {}, {}}));
    EXPECT_TRUE(store.append_audits({AuditEntry{}}));
    Batch batch;
    batch.save_idempotency = {{"new", "hash", running, {}}};
    batch.save_rdma_links = {{{"siw0", SoftRdmaType::siw, "eno1"}, 1}};
    batch.save_identities = {{test::pf, {}}};
    batch.save_verifications = {{{test::pf, 2}, test::verification("run2", "00000002", 5)}};
    auto const before = store.last_event().value();
    EXPECT_EQ(before, GetParam() < 6 ? 0U : GetParam() < 7 ? 7U : 8U);
    EXPECT_EQ(store.events({test::pf, 1}, {}).value().items.size(),
              GetParam() < 6 ? 0U : before - 6);
    EXPECT_EQ(store.events("00000001").value().size(), GetParam() < 6 ? 0U : 1U);
    batch.save_events = {test::event(before + 1, 2)};
    EXPECT_TRUE(store.commit(batch));
    EXPECT_EQ(store.events({test::pf, 2}, {}).value().items, batch.save_events);
    auto const saved = std::vector{batch.save_verifications[0].second};
    EXPECT_EQ(store.verifications("00000002", RowRange{}).value().items, saved);
    EXPECT_EQ(store.verifications(VfId{test::pf, 2}, {}).value().items, saved);
    EXPECT_EQ(store.load()->rdma_links.at("siw0"), batch.save_rdma_links[0]);
    EXPECT_EQ(store.load()->identities.at(test::pf), PfIdentity{});
}

// Form 10 and those before it have networks by PF.
TEST_F(FormsTest, NetworksOfOneNameBecomeSeveral) {
    restore(10);
    execute(R"sql(INSERT INTO pfs VALUES ('0000:02:00.0', '{"base": null, "revision": 4, "spec": {
        "mode": "manage", "networks": [{"host_address": "192.168.200.1", "mtu": 1500,
        "name": "train", "prefix": "192.168.200.0/24", "rdma": "auto", "dscp": 26}]}}'))sql");
    execute(
        "UPDATE attachments SET document = json_set(document, '$.vf.pf', '0000:02:00.0', "
        "'$.spec.pf', '0000:02:00.0') WHERE id = '00000002'");
    execute(
        "UPDATE quarantine SET pf = '0000:02:00.0', document = json_set(document, '$.vf.pf', "
        "'0000:02:00.0', '$.attachment.vf.pf', '0000:02:00.0')");
    auto const state = open().load().value();
    PciAddress const second{0, 2, 0, 0};
    Network moved;
    moved.name = "train-0000-02-00-0";
    moved.prefix = IpPrefix::parse("192.168.200.0/24").value();
    moved.dscp = 26;
    moved.pfs = {{second, IpAddress::parse("192.168.200.1").value()}};
    EXPECT_EQ(state.networks,
              (Networks{{"train", {test::network(), 3}}, {moved.name, {moved, 4}}}));
    EXPECT_EQ(state.attachments.at("00000001").spec.network, "train");
    EXPECT_EQ(state.attachments.at("00000002").spec.network, moved.name);
    EXPECT_EQ(state.quarantine.at({second, 5}).attachment.spec.network, moved.name);
}

// Before form 14 not everything that happened became an event: nothing resumes there.
TEST_P(FormsTest, SaysFromWhichEventOnAllAreThere) {
    restore(GetParam());
    auto store = open();
    auto const page = store.events_after(0, 100).value();
    EXPECT_EQ(page.last, store.last_event().value());
    EXPECT_EQ(page.pruned, GetParam() < 14 ? page.last : 6U);
}

// As form 6 stores them, for attachments without anything else; and as form 7 stores them.
TEST_F(FormsTest, CertificatesAreFoundByTheirAttachment) {
    restore(6);
    execute(R"sql(INSERT INTO events VALUES (8, '0000:01:00.0', 1, '{"number": 8,
        "at": "2026-01-31T12:00:02.000Z", "kind": "returned", "pf": "0000:01:00.0", "vf": 1,
        "attachment": "00000009", "vm_name": "vm1", "operation": null, "because_of": null,
        "detail": "reset, and as it was before", "certificate": {
            "vf": {"pf": "0000:01:00.0", "index": 1}, "vf_pci": "0000:01:10.0",
            "attachment": "00000009", "vm_name": "vm1", "settings": {}, "driver": "igbvf",
            "seen_at": "2026-01-31T12:00:02.000Z"}}'))sql");
    auto const earlier = open().events("00000009").value();
    ASSERT_EQ(earlier.size(), 1U);
    ASSERT_TRUE(earlier[0].certificate);
    EXPECT_EQ(earlier[0].certificate->driver, "igbvf");
    EXPECT_EQ(earlier[0].certificate->attached, CertificateMark{});
    EXPECT_EQ(earlier[0].certificate->reset, std::nullopt) << "nobody noted it";
    std::filesystem::remove(path());
    restore(7);
    auto const kept = open().events("00000009").value();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].certificate->detached.requested_by, "token:11111111");
    EXPECT_EQ(kept[0].certificate->reset->method, ResetMethod::flr);
}

// As long as a request's header, which filled stores of these forms.
TEST_F(FormsTest, CutsWhatEarlierAuditsHold) {
    restore(7);
    execute("DELETE FROM audit");
    for (auto const* outcome : {"202", "403", "accepted"})
        execute(
            fmt::format("INSERT INTO audit (at_ms, who, request_id, action, subject, outcome) "
                        "VALUES (5, 'uid:0', 'id', '{0}', '{0}', '{1}')",
                        std::string(16'000, 'a'), outcome));
    auto const kept = open().audit({}, {}).value().items;
    ASSERT_EQ(kept.size(), 3U);
    EXPECT_EQ(kept[0].action, std::string(256, 'a'));
    EXPECT_EQ(kept[0].subject, std::string(256, 'a'));
    EXPECT_EQ(kept[2].requests, 1U);
    EXPECT_FALSE(kept[0].refused);
    EXPECT_TRUE(kept[1].refused);
    EXPECT_FALSE(kept[2].refused);
}

// Lists of operations are filtered by what form 13 has in documents only.
TEST_F(FormsTest, FiltersEarlierOperations) {
    restore(13);
    execute("INSERT INTO operations VALUES (9, 'cut', 1, 5, 'cut short')");
    auto store = open();
    auto const unfinished = store.operations({OperationState::running}, {}).value().items;
    ASSERT_EQ(unfinished.size(), 1U);
    EXPECT_EQ(unfinished[0].id, running);
    auto const attached = store.operations({{}, OperationKind::attach}, {}).value().items;
    EXPECT_EQ(attached.size(), 2U);
    auto const of_one = store.operations({{}, {}, "/v1/attachments/00000002"}, {}).value().items;
    EXPECT_EQ(of_one, unfinished);
    EXPECT_FALSE(store.operations({}, {})) << "the one that can't be read";
}

// A store of an earlier form gets its id when it is opened first, and keeps it.
TEST_P(FormsTest, HasAnIdOfItsOwn) {
    restore(GetParam());
    auto const id = open().id().value();
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(open().id().value(), id);
    if (GetParam() >= 19) EXPECT_EQ(id, "0123456789abcdef0123456789abcdef");
}

// Form 13 did not record where a request came from; only who sent it.
TEST_F(FormsTest, KeepsEarlierAudits) {
    restore(13);
    execute("DELETE FROM audit");
    for (auto const* who : {"uid:0", "token:11111111", "address:192.0.2.9", "others"})
        execute(
            fmt::format("INSERT INTO audit (at_ms, who, request_id, action, subject, outcome) "
                        "VALUES (5, '{}', 'id', 'a', 's', '202')",
                        who));
    auto const kept = open().audit({}, {}).value().items;
    ASSERT_EQ(kept.size(), 4U);
    EXPECT_EQ(kept[0].from, "");
    EXPECT_EQ(kept[1].from, "address:192.0.2.9");
    EXPECT_EQ(kept[2].from, "");
    EXPECT_EQ(kept[3].from, "uid:0");
    EXPECT_FALSE(kept[3].operation);
    EXPECT_FALSE(kept[3].plan_digest);
}

INSTANTIATE_TEST_SUITE_P(Form, FormsTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                                         18, 19));

class LaterFormsTest : public FormsTest {};
INSTANTIATE_TEST_SUITE_P(Form, LaterFormsTest,
                         testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                         19));

TEST_P(LaterFormsTest, KeepTokensAndHistory) {
    restore(GetParam());
    auto store = open();
    auto const tokens = store.tokens().value();
    ASSERT_EQ(tokens.size(), 1U);
    EXPECT_EQ(tokens[0].description, "the orchestrator");
    EXPECT_EQ(tokens[0].expires_at, std::nullopt) << "as it was made";
    Token expected{"11111111",         tokens[0].sha256,        "admin",
                   "the orchestrator", test::at(1769860800000), {}};
    if (GetParam() >= 13) {
        expected.scopes = {"attachments", "operations"};
        expected.rotated_at = test::at(1769860801000);
        expected.former = {"b3a8e0e1f9ab1bfe3a36f231f676f78bb30a519d2b21e6c530c0eee8ebb4a5d0",
                           test::at(1769864400000)};
        expected.last_use = {test::at(1769860802000), "address:10.0.0.9"};
    }
    EXPECT_EQ(tokens[0], expected);
    EXPECT_EQ(store.audit({}, {}).value().items.size(), 1U);
    EXPECT_EQ(store.idempotency("key", test::at(1769860800000)).value()->operation, running);
    std::vector const history{
        test::verification("0000000000000000000000000000000a", "00000001", 1769860801000)};
    EXPECT_EQ(store.verifications("00000001", RowRange{}).value().items, history);
    EXPECT_EQ(store.verifications(VfId{test::pf, 1}, {}).value().items, history)
        << "where the attachment is";
}

// Runs of an attachment that ended in quarantine have their VF, too; those of other former
// attachments have none, and stay with their attachment.
TEST_P(LaterFormsTest, GiveFormerAttachmentsTheirHistory) {
    restore(GetParam());
    execute("UPDATE verifications SET attachment = '00000005'");
    if (GetParam() >= 4) execute("UPDATE verifications SET vf = 5");
    EXPECT_EQ(open().verifications(VfId{test::pf, 5}, {}).value().items.size(), 1U);
    std::filesystem::remove(path());
    restore(GetParam());
    execute("UPDATE verifications SET attachment = '0000000f'");
    if (GetParam() >= 4) execute("UPDATE verifications SET pf = NULL, vf = NULL");
    execute("INSERT INTO attachments VALUES ('00000009', 'cut short')");
    auto store = open();
    EXPECT_EQ(store.verifications("0000000f", RowRange{}).value().items.size(), 1U);
    EXPECT_TRUE(store.verifications(VfId{test::pf, 1}, {}).value().items.empty());
}

}  // namespace
}  // namespace vfmgr

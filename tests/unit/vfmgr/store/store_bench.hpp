// SPDX-License-Identifier: Apache-2.0
// A store in a folder of its own, and values to keep in it. For tests only; the fixture owns the
// folder.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/store/store.hpp"

namespace vfmgr::test {

inline PciAddress const pf{0, 1, 0, 0};

inline Time at(std::int64_t milliseconds) {
    return Time(std::chrono::milliseconds(milliseconds));
}

inline Network network() {
    Network value;
    value.name = "train";
    value.vlan = 100;
    value.prefix = IpPrefix::parse("192.168.100.0/24").value();
    value.pfs = {{pf, IpAddress::parse("192.168.100.1").value()}};
    return value;
}

inline DesiredPool pool() {
    DesiredPool value{{"fast", {}, {}}, 7};
    value.pool.select.pfs = {{pf, 0, 3}};
    value.pool.select.link_layers = {LinkLayer::ethernet};
    value.pool.select.labels = {{"rail", "0"}};
    value.pool.defaults.network = "train";
    value.pool.defaults.settings.trust = true;
    value.pool.defaults.verify = VerifyMode::required;
    return value;
}

inline DesiredTenant tenant() {
    DesiredTenant value;
    value.tenant.name = "blue";
    value.tenant.vms = {"11111111-1111-1111-1111-111111111111"};
    value.tenant.networks = {"train"};
    value.tenant.pools = {"fast"};
    value.tenant.quota.attachments = 2;
    value.revision = 9;
    return value;
}

inline FleetMembership membership() {
    return {"33333333-3333-3333-3333-333333333333",
            "host1",
            {"https://fleet1.example:8480"},
            "-----BEGIN CERTIFICATE-----",
            at(1769860800000),
            {},
            41};
}

inline Reservation reservation() {
    Reservation value{"job", {}, {{pf, 3}}, "uid:0", at(1769860800000), at(1769861400000)};
    value.spec.pool = "fast";
    value.spec.count = 2;
    return value;
}

inline DesiredIdentities handed_out() {
    DesiredIdentities value{{}, 8};
    value.identities.macs = {
        Range<MacAddress>::parse("52:54:00:00:00:00-52:54:00:00:00:ff").value()};
    value.identities.addresses = {
        {"train", {Range<IpAddress>::parse("192.168.100.10-192.168.100.99").value()}}};
    return value;
}

inline DesiredPf desired_pf(std::uint64_t revision = 1) {
    DesiredPf value;
    value.spec.num_vfs = 7;
    value.revision = revision;
    value.base = PfBase{true, 1500, false, {IpAddress::parse("fe80::1").value()}};
    return value;
}

inline Attachment attachment(std::uint32_t number) {
    Attachment value;
    value.id = fmt::format("{:08x}", number);
    value.spec.vm = "vm1";
    value.spec.pf = pf;
    value.spec.verify = VerifyMode::none;
    value.spec.network = "train";
    value.spec.settings.trust = true;
    value.vf = {pf, static_cast<std::uint16_t>(number % 7)};
    value.vf_pci = {0, 1, 0x10, 0};
    value.vm_uuid = "11111111-1111-1111-1111-111111111111";
    value.vm = "vm1";
    value.settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    value.baseline.mac = MacAddress{};  // as a driver reports it
    value.address = IpAddress::parse("192.168.100.2").value();
    value.live = true;
    value.created_at = at(1769860800123);
    return value;
}

inline Quarantine quarantine(std::uint16_t index) {
    Quarantine value;
    value.vf = {pf, index};
    value.attachment = attachment(index);
    value.reason = "the MAC could not be restored";
    value.residue = {"mac 02:00:00:00:00:01"};
    value.since = at(1769860800456);
    return value;
}

inline PfIdentity identity() {
    return {MacAddress{{0x52, 0x54, 0, 0, 1, 1}}, Guid{7}, "MT2108X00001"};
}

inline FirmwareTries firmware_tries() {
    FirmwareTries value;
    value.settings.num_of_vfs = 16;
    value.boots["NUM_OF_VFS"] = {"5f0cb0d4-0d3c-4f7a-9d39-9e0b8b1a3a11"};
    return value;
}

inline std::map<std::string, DesiredRdmaLink> rdma_links() {
    return {{"rxe0", {{"rxe0", SoftRdmaType::rxe, "bond0"}, 1}}};
}

inline Operation operation(std::string id, OperationState state, std::int64_t created_ms = 1000) {
    Operation value;
    value.id = std::move(id);
    value.kind = OperationKind::attach;
    value.state = state;
    value.subject = "/v1/attachments/00000001";
    value.steps = {{"bind VF 2 to vfio-pci", StepState::done}};
    value.requested_by = "uid:0";
    value.created_at = at(created_ms);
    if (finished(value)) {
        value.problem = Error{Problem::kernel_refused, "d", "r", {{"c", "EIO", "t"}}, {}};
        value.finished_at = at(created_ms + 1);
    }
    return value;
}

inline JournalRecord record(std::uint32_t seq, Step step, std::vector<Step> undo = {}) {
    return {seq, std::move(step), std::move(undo), StepState::intended};
}

inline Verification verification(std::string run, std::string attachment, std::int64_t started_ms) {
    Verification value;
    value.run = std::move(run);
    value.attachment = std::move(attachment);
    value.verdict = Verdict::pass;
    value.path = TestPath::internal_switch;
    TestResult ping;
    ping.name = "rc_ping";
    ping.figures["p50_us"] = 180.25;
    value.tests.push_back(ping);
    value.started_at = at(started_ms);
    return value;
}

inline Event event(std::uint64_t number, std::optional<std::uint16_t> vf) {
    Event value;
    value.number = number;
    value.at = at(1000);
    value.pf = pf;
    value.vf = vf;
    value.detail = "mac is 02:00:00:00:00:01";
    return value;
}

// A run on VF 1 of `pf`.
inline std::pair<VfId, Verification> run_on_vf(std::string run, std::string attachment,
                                               std::int64_t started_ms) {
    return {{pf, 1}, verification(std::move(run), std::move(attachment), started_ms)};
}

class StoreTest : public testing::Test {
  protected:
    [[nodiscard]] std::string path() const { return folder_ / "vfmgr.db"; }
    [[nodiscard]] Store open(StoreLimits const& limits = {}) const {
        auto store = Store::open(path(), limits);
        // Without a store a test can't run; gtest reports the exception as a failure.
        if (!store) throw std::runtime_error(store.error().detail);
        return std::move(*store);
    }
    [[nodiscard]] Error refusal_to_open() const {
        auto const store = Store::open(path());
        return store ? Error{Problem::internal, "it was opened", {}} : store.error();
    }
    // Runs without the store's knowledge, while it is closed.
    void execute(std::string const& sql) const {
        SQLite::Database database(path(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        database.exec(sql);
    }
    [[nodiscard]] std::string bytes() const {
        std::ifstream file(path(), std::ios::binary);
        std::ostringstream out;
        out << file.rdbuf();
        return out.str();
    }

    TemporaryFolder temporary_;
    std::filesystem::path const folder_ = temporary_.path();
};

// Every Error of a store has: unavailable, its file, and what to do.
inline void expect_unavailable(Error const& error, std::string const& path) {
    EXPECT_EQ(error.problem, Problem::unavailable) << error.detail;
    EXPECT_NE(error.detail.find(path), std::string::npos) << error.detail;
    EXPECT_FALSE(error.remedy.empty()) << error.detail;
}

}  // namespace vfmgr::test

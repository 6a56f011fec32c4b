// SPDX-License-Identifier: Apache-2.0
// A whole run on InfiniBand, both ends in this process over the in-process device: the host at port
// 1, the VF at port 2. Each proof fails once by a fault of its own. No InfiniBand card was at hand:
// the device passes packets as the specification says, by LID, GID and P_Key.
#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "tests/unit/vfmgr/proof/verbs/subnet.hpp"
#include "vfmgr/proof/host/responder.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::verify {
namespace {

using fakes::fabric;
using testing::AllOf;
using testing::HasSubstr;

std::uint16_t const echo_port = static_cast<std::uint16_t>(24100 + ::getpid() % 4000);
constexpr Guid foreign_guid{0x0202'c9ff'fe11'0009};
constexpr Pkey partition{1, PkeyMembership::full};

// As it comes through the guest plane.
template <class T>
T sent(T const& value) {
    return from_json_text<T>(to_json_text(value)).value();
}

// What a fault may change, before or on the way.
struct Trial {
    SessionPermit permit;
    Subject subject;
    std::function<void(SessionRequest&)> on_request = [](auto&) {};
    std::function<void(SessionOffer&)> on_offer = [](auto&) {};
    std::function<void(StreamRequest&)> on_stream = [](auto&) {};
    std::function<void(GuestReport&)> on_report = [](auto&) {};
};

Trial sound_trial() {
    Trial run;
    auto& permit = run.permit;
    permit.attachment = "a1";
    permit.run = "r1";
    permit.nonce = "0123456789abcdef";
    permit.host_address = *IpAddress::parse("127.0.0.1");
    permit.peer_address = *IpAddress::parse("127.0.0.2");
    permit.host_guid = host_guid;
    permit.vf_guid = vf_guid;
    permit.profile = Profile::default_;
    auto& attachment = run.subject.attachment;
    attachment.attachment = permit.attachment;
    attachment.run = permit.run;
    attachment.nonce = permit.nonce;
    attachment.guid = vf_guid;
    attachment.address = permit.peer_address;
    attachment.responder = permit.host_address;
    attachment.echo_port = echo_port;
    return run;
}

void expect_partition(Trial& run, Pkey const& pkey) {
    run.permit.pkey = run.subject.attachment.pkey = pkey;
}

struct Infiniband : testing::Test {
    Trial run = sound_trial();
    std::vector<std::string> measured_tests{"ud_ping"};
    std::unique_ptr<Responder> responder;

    void SetUp() override {
        plug_in_host_and_vf();
        ResponderLimits limits;
        limits.echo_port = echo_port;
        limits.write_bytes = limits.read_bytes = 1 << 20;
        responder = Responder::start(limits, [](auto const&) { return Result<void>(); }).value();
    }
    void TearDown() override {
        responder.reset();
        EXPECT_EQ(fakes::alive(), 0U) << "something was not destroyed, or before its time";
        EXPECT_EQ(fabric().overflows, 0U);
    }

    StreamHost streams(std::string const& session) {
        return {[this, session](StreamRequest request) -> Result<StreamOffer> {
                    run.on_stream(request);
                    VFMGR_TRY(auto const answer, responder->open_stream(session, sent(request)));
                    return sent(std::get<StreamOffer>(answer));
                },
                [this, session](std::string const& stream) {
                    responder->close_stream(session, stream);
                }};
    }
    Result<Verification> verify() {
        VFMGR_TRY(auto const session, GuestSession::prepare(run.subject));
        auto request = session->request();
        run.on_request(request);
        VFMGR_TRY(auto const answer, responder->open(run.permit, sent(request)));
        auto offer = sent(std::get<SessionOffer>(answer));
        run.on_offer(offer);
        auto tests = select_tests(all_measurements(), {measured_tests}).value();
        for (auto& each : tests) each.load.window = std::chrono::milliseconds(20);
        auto report = session->run(offer, tests, streams(offer.session));
        run.on_report(report);
        return responder->close(offer.session, sent(report));
    }
};

TestResult test_in(Verification const& verification, std::string_view name) {
    auto const found = std::ranges::find(verification.tests, name, &TestResult::name);
    return found == verification.tests.end() ? TestResult() : *found;
}

TEST_F(Infiniband, AVfIsProvedOverLidAndGid) {
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_EQ(verified->verdict, Verdict::pass) << describe(*verified);
    for (auto const* name :
         {"partition", "reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read", "ud_ping"})
        EXPECT_EQ(test_in(*verified, name).verdict, Verdict::pass) << describe(*verified);
    EXPECT_EQ(verified->vf_guid, vf_guid);
    EXPECT_FALSE(verified->vf_mac);
    EXPECT_EQ(verified->peer_gid, gid_text(gid_at(vf_guid)));
    // The host does not trust the LID alone.
    EXPECT_GT(fabric().with_grh, 0U);
    EXPECT_EQ(fabric().without_grh, 0U);
}

TEST_F(Infiniband, ATestOfEachKindOfStreamRuns) {
    measured_tests = {"write_bandwidth", "send_bandwidth", "write_latency",
                      "send_latency",    "ud_ping",        "transfer"};
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    for (auto const& name : measured_tests)
        EXPECT_EQ(test_in(*verified, name).verdict, Verdict::pass)
            << name << ": " << test_in(*verified, name).detail;
}

// mlx5's VFs often have their PF's LID.
TEST_F(Infiniband, APfAndItsVfMayShareALid) {
    fabric().ports[1].lid = host_lid;
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_EQ(verified->verdict, Verdict::pass) << describe(*verified);
}

TEST_F(Infiniband, TheNetworksPartitionIsChosenFromTheTable) {
    expect_partition(run, {1, PkeyMembership::limited});
    fabric().ports[0].pkeys = {0xffff, 0x8002, 0x8001};
    fabric().ports[1].pkeys = {0x7fff, 0, 0x0001};
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_EQ(verified->verdict, Verdict::pass) << describe(*verified);
    EXPECT_EQ(test_in(*verified, "partition").detail, "P_Key 0x0001");
}

// --- each proof fails by a fault of its own -------------------------------------------------

struct Fault {
    char const* name;
    std::function<void(Trial&)> make;
    char const* test;    // that fails first, and is the verdict's cause
    char const* detail;  // of it
    char const* remedy = "";
};
void PrintTo(Fault const& fault, std::ostream* out) {
    *out << fault.name;
}

struct InfinibandFault : Infiniband, testing::WithParamInterface<Fault> {};

TEST_P(InfinibandFault, TurnsItsProofRed) {
    auto const& fault = GetParam();
    fault.make(run);
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_EQ(verified->verdict, Verdict::fail);
    EXPECT_THAT(verified->detail, AllOf(testing::StartsWith(std::string(fault.test) + ": "),
                                        HasSubstr(fault.detail)));
    EXPECT_THAT(verified->remedy, HasSubstr(fault.remedy));
}

constexpr char const* none_arrived = "the host received 0 of 16 RC sends";
constexpr char const* no_answer = "transport retry counter exceeded";
constexpr char const* line_of_vf = "vfmgr-0001=0x0001,indx0,ipoib:0x0202c9fffe110002=full;";

INSTANTIATE_TEST_SUITE_P(
    Each, InfinibandFault,
    testing::Values(
        Fault{"vfs_lid_is_anothers",
              [](Trial& run) { run.on_request = [](auto& it) { it.guest.subnet->lid = 77; }; },
              "rc_ping", none_arrived},
        Fault{"hosts_lid_is_anothers",
              [](Trial& run) { run.on_offer = [](auto& it) { it.host.subnet->lid = 77; }; },
              "rc_ping", no_answer},
        Fault{"hosts_gid_is_anothers",
              [](Trial& run) {
                  run.on_offer = [](auto& it) { it.host.gid = gid_hex(gid_at(foreign_guid)); };
              },
              "rc_ping", none_arrived, "on InfiniBand, that the subnet manager"},
        Fault{"vf_is_not_in_the_partition",
              [](Trial& run) {
                  expect_partition(run, partition);
                  fabric().ports[0].pkeys = {0xffff, 0x8001};
              },
              "partition", "the VM's port is not in partition 0x0001: its P_Keys are 0xffff",
              line_of_vf},
        Fault{"host_is_not_in_the_partition",
              [](Trial& run) {
                  expect_partition(run, partition);
                  fabric().ports[1].pkeys = {0xffff, 0x8001};
              },
              "partition", "the host's port is not in partition 0x0001: its P_Keys are 0xffff",
              "vfmgr-0001=0x0001,indx0,ipoib:0x0002c9fffe110001=full;"},
        Fault{"both_are_limited_members",
              [](Trial& run) {
                  expect_partition(run, {1, PkeyMembership::limited});
                  for (auto& port : fabric().ports) port.pkeys = {0x0001};
              },
              "partition", "the host's port is a limited member of partition 0x0001",
              "0x0002c9fffe110001=full;"},
        Fault{"vf_is_a_limited_member",
              [](Trial& run) {
                  expect_partition(run, partition);
                  fabric().ports[0].pkeys = {0x8001};
                  fabric().ports[1].pkeys = {0x0001};
              },
              "partition", "the VM's port is a limited member of partition 0x0001, and full is",
              line_of_vf},
        Fault{"limited_members_without_an_expectation",
              [](Trial&) {
                  for (auto& port : fabric().ports) port.pkeys = {0x7fff};
              },
              "partition", "no packet passes between the P_Keys of host and VM, 0x7fff and 0x7fff",
              "vfctl ib partitions"},
        Fault{"no_datagram_of_ip", [](Trial& run) { run.subject.attachment.echo_port = 9; },
              "reachability", "no datagram of this run came from 127.0.0.2"},
        Fault{
            "answers_of_ip_were_made_up",
            [](Trial& run) { run.on_report = [](auto& it) { it.digests["reachability"] = "00"; }; },
            "reachability", "the host's answers to 127.0.0.2 did not arrive",
            "has the port GUID 02:02:c9:ff:fe:11:00:02"},
        Fault{"mtu_is_too_small", [](Trial& run) { run.permit.mtu = 2044; }, "path_mtu",
              "no datagram of 2016 bytes (MTU 2044) came from 127.0.0.2"},
        Fault{"sends_are_corrupted", [](Trial&) { fabric().spoils = IBV_WR_SEND; }, "rc_ping",
              "bytes of the RC sends differ"},
        Fault{"writes_are_corrupted", [](Trial&) { fabric().spoils = IBV_WR_RDMA_WRITE; },
              "rdma_write", "bytes written differ"},
        Fault{"reads_are_corrupted", [](Trial&) { fabric().spoils = IBV_WR_RDMA_READ; },
              "rdma_read", "had to read is wrong"},
        Fault{"datagrams_are_lost", [](Trial&) { fabric().loses_datagrams = true; }, "ud_ping",
              "4 of 4 datagrams got no answer"},
        Fault{
            "datagrams_go_to_anothers_lid",
            [](Trial& run) { run.on_stream = [](auto& it) { it.pairs.front().subnet->lid = 77; }; },
            "ud_ping", "4 of 4 datagrams got no answer"}),
    [](auto const& row) { return std::string(row.param.name); });

// The proofs themselves fail too: a port outside of the partition carries nothing.
TEST_F(Infiniband, OutsideOfThePartitionNoPacketArrives) {
    expect_partition(run, partition);
    fabric().ports[0].pkeys = {0x8001};
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_THAT(test_in(*verified, "rc_ping").detail,
                AllOf(HasSubstr(none_arrived), HasSubstr(no_answer)));
    EXPECT_EQ(fabric().with_grh + fabric().without_grh, 0U);
}

// --- faults that end a run before it starts ------------------------------------------------

struct Early {
    char const* name;
    std::function<void(Trial&)> make;
    char const* detail;
    char const* remedy;
};
void PrintTo(Early const& fault, std::ostream* out) {
    *out << fault.name;
}

struct InfinibandEarly : Infiniband, testing::WithParamInterface<Early> {};

TEST_P(InfinibandEarly, EndsTheRunWithItsReason) {
    GetParam().make(run);
    auto const verified = verify();
    ASSERT_FALSE(verified);
    EXPECT_THAT(verified.error().detail, HasSubstr(GetParam().detail));
    EXPECT_THAT(verified.error().remedy, HasSubstr(GetParam().remedy));
}

INSTANTIATE_TEST_SUITE_P(
    Each, InfinibandEarly,
    testing::Values(
        Early{"vf_has_another_guid", [](Trial& run) { run.subject.attachment.guid = foreign_guid; },
              "no RDMA device has a port with GUID 02:02:c9:ff:fe:11:00:09 (devices: mlx5_7)",
              "detach the VF and attach it again"},
        Early{"guest_shows_another_port",
              [](Trial& run) {
                  run.on_request = [](auto& it) { it.guest.gid = gid_hex(gid_at(foreign_guid)); };
              },
              "is not that of the VF's port, whose GUID is 02:02:c9:ff:fe:11:00:02",
              "the VF's own RDMA device"},
        Early{"guest_shows_another_subnet",
              [](Trial& run) {
                  run.on_request = [](auto& it) {
                      it.guest.gid = gid_hex(gid_at(vf_guid, 0xfec0'0000'0000'0000));
                  };
              },
              "is in another InfiniBand subnet than fe80:", "ports of one subnet"},
        Early{"guest_is_on_ethernet",
              [](Trial& run) { run.on_request = [](auto& it) { it.guest.subnet.reset(); }; },
              "is not that of the VF's port", "the VF's own RDMA device"},
        Early{"vf_has_no_lid", [](Trial&) { fabric().ports[1].lid = 0; },
              "mlx5_7 port 2 has no LID", "subnet manager"},
        Early{"vf_waits_for_a_subnet_manager",
              [](Trial&) { fabric().ports[1].state = IBV_PORT_INIT; },
              "mlx5_7 port 2 is init, not active", "start a subnet manager"},
        Early{"vf_has_no_pkey", [](Trial&) { fabric().ports[1].pkeys.clear(); },
              "port 2 of mlx5_7 has no P_Key", "subnet manager"},
        Early{"network_is_ethernet", [](Trial& run) { run.subject.attachment.guid.reset(); },
              "is InfiniBand, but the network is Ethernet (RoCE)", "LINK_TYPE_P1"},
        Early{"hosts_port_is_unknown", [](Trial& run) { run.permit.host_guid.reset(); },
              "InfiniBand port is unknown", "load ib_ipoib"}),
    [](auto const& row) { return std::string(row.param.name); });

TEST_F(Infiniband, AStreamOfAnotherPortIsRefused) {
    run.on_stream = [](auto& it) { it.pairs.front().gid = gid_hex(gid_at(foreign_guid)); };
    auto const verified = verify();
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_THAT(test_in(*verified, "ud_ping").detail, HasSubstr("is not that of the VF's port"));
}

}  // namespace
}  // namespace vfmgr::verify

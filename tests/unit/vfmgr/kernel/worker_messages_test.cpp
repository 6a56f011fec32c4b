// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/driver_model.hpp"

namespace vfmgr {
namespace {

PciAddress const asked{0, 1, 0, 0};

template <class T>
std::string_view without_newline(T const& line) {
    return std::string_view(line).substr(0, line.size() - 1);
}

TEST(WorkerMessages, RequestsComeBackAsTheyWere) {
    VfSpec settings;
    settings.mac = MacAddress{};  // as a baseline may have it
    for (auto const& request :
         {WorkerRequest{1, std::nullopt, 20'000}, WorkerRequest{2, SetNumVfs{asked, 7}, 1},
          WorkerRequest{3, ConfigureVfs{asked, {{2, settings}}, {"mac"}}, 0},
          WorkerRequest{4, AddSoftRdmaLink{{"rxe0", SoftRdmaType::rxe, "bond0"}}, 1},
          WorkerRequest{5, RemoveSoftRdmaLink{"rxe0", true}, 1},
          WorkerRequest{6, {}, 5, WorkerReads::firmware},
          WorkerRequest{7, {}, 5, WorkerReads::traffic}}) {
        auto const line = to_line(request);
        EXPECT_EQ(line.find('\n'), line.size() - 1);
        EXPECT_EQ(parse_request(without_newline(line)), request) << line;
    }
}

TEST(WorkerMessages, AnswersComeBackAsTheyWere) {
    KernelView view;
    view.pfs[asked] = make_igb_pf("0000:01:00.0", "enp1s0");
    view.pfs[asked].stuck = "it hangs";
    HostInterface interface;
    interface.id = {asked, std::uint16_t{100}};
    interface.peers.push_back({IpAddress::parse("10.0.0.2").value(), {}});
    view.pfs[asked].interfaces.push_back(interface);
    VfState vf;
    vf.pci = {0, 1, 0x10, 0};
    vf.settings.mac = MacAddress{};
    vf.holders = {{812, "qemu \"x\"\n"}};
    view.pfs[asked].vfs.push_back(vf);
    view.routes.push_back({IpPrefix::parse("10.1.0.0/16").value(), "eth0"});
    FirmwareCard card;
    card.pci = asked;
    card.functions = {asked};
    card.problem = Error{Problem::unsupported, "no tool", "install it"};
    auto& network = view.network.emplace();
    network.netdevs["bond0.100"].parent = "bond0";
    network.netdevs["enp1s0v0"].pci = vf.pci;
    network.netdevs["br0"].mac = MacAddress{{0x52, 0x54, 0, 0, 0, 1}};
    network.rdma["rxe0"].type = SoftRdmaType::rxe;
    network.rdma["rxe0"].users = {{812, "rping \"x\"\n", "CM id"}, {{}, "nvme_rdma", "context"}};
    network.rdma["rxe0"].users_unknown = "EPERM";
    network.rxe_module = true;
    network.siw_module = false;
    network.stale = true;
    VfCounters counters;
    counters.tx_bytes = UINT64_MAX;
    WorkerAnswer const answers[] = {
        {1, {}, view, {}},
        {2, {}, {}, {"remark"}},
        {4, {}, {}, {}, std::vector{card}},
        {5, {}, {}, {}, {}, counters},
        {6,
         {},
         {},
         {},
         {},
         {},
         PfTraffic{asked,
                   Time{std::chrono::seconds(9)},
                   {{3, counters}},
                   {},
                   {{"rnr_nak_retry_err", 4}}}},
        {3, Error{Problem::vf_in_use, "a", "b", {{"open", "EBUSY", "busy"}}}, {}, {}}};
    for (auto const& answer : answers) {
        auto const line = to_line(answer);
        EXPECT_EQ(line.find('\n'), line.size() - 1);
        EXPECT_EQ(parse_answer(without_newline(line)), answer) << line;
    }
}

TEST(WorkerMessages, StepsOfTheHypervisorAreNone) {
    EXPECT_FALSE(parse_request(R"({"id": 1, "milliseconds": 1, "step": {"step":
        "await_verification", "attachment": "a", "timeout_seconds": 5}})"));
    EXPECT_FALSE(parse_request("{}"));
    EXPECT_FALSE(parse_answer("[]"));
}

TEST(Lines, ComeOutWholeHoweverTheyCameIn) {
    Lines lines;
    EXPECT_TRUE(lines.add("on"));
    EXPECT_EQ(lines.next(), std::nullopt);
    EXPECT_TRUE(lines.add("e\ntwo\nth"));
    EXPECT_EQ(lines.next(), "one");
    EXPECT_EQ(lines.next(), "two");
    EXPECT_EQ(lines.next(), std::nullopt);
    EXPECT_TRUE(lines.add("ree\n"));
    EXPECT_EQ(lines.next(), "three");
    EXPECT_FALSE(lines.add(std::string(20 << 20, 'x'))) << "no line is that long";
}

}  // namespace
}  // namespace vfmgr

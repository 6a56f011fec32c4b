// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Sysfs {
    test::TemporaryFolder folder;
    void write(std::string const& file, std::uint64_t count) const {
        auto const path = std::filesystem::path(folder.file(file));
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << count << "\n";
    }
    [[nodiscard]] std::vector<Counter> read() const {
        return read_counters({"interface", "rxe0"}, folder.file(""));
    }
};

TEST(Counters, AreThoseOfTheDeviceAndOfWhatItLiesOn) {
    Sysfs const sysfs;
    sysfs.write("class/net/interface/statistics/rx_dropped", 3);
    sysfs.write("class/net/interface/statistics/rx_packets", 1000);
    sysfs.write("class/net/interface/lower_pf0/ifindex", 2);
    sysfs.write("class/net/pf0/statistics/rx_crc_errors", 4);
    sysfs.write("class/net/other/statistics/rx_dropped", 5);
    sysfs.write("class/infiniband/rxe0/ports/1/hw_counters/out_of_seq_request", 6);
    EXPECT_THAT(sysfs.read(),
                ElementsAre(Counter{CounterSource::netdev, "interface", "rx_dropped", 3},
                            Counter{CounterSource::netdev, "pf0", "rx_crc_errors", 4},
                            Counter{CounterSource::rdma, "rxe0", "out_of_seq_request", 6}));
}

TEST(Counters, GrowFromBefore) {
    Counter const dropped{CounterSource::netdev, "interface", "rx_dropped", 3};
    auto more = dropped;
    more.count = 10;
    Counter const ingress{CounterSource::qdisc, "interface", "ingress", 7};
    EXPECT_THAT(growth({dropped}, {dropped}), IsEmpty());
    EXPECT_THAT(growth({more}, {dropped}), IsEmpty());  // recreated meanwhile
    EXPECT_THAT(growth({dropped}, {more, ingress}),
                ElementsAre(Counter{CounterSource::netdev, "interface", "rx_dropped", 7}, ingress));
}

TEST(Losses, AreNamedWithSideAndRemedy) {
    auto const losses =
        explain_losses({{CounterSource::qdisc, "interface", "ingress", 812}}, Judge::host);
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].side, Judge::host);
    EXPECT_EQ(losses[0].detail,
              "on the host, tc dropped 812 packets on interface (qdisc ingress): a rate limit is "
              "set there");
    EXPECT_THAT(losses[0].remedy, HasSubstr("tc -s filter show dev interface ingress"));
}

// A guest may report any name.
TEST(Losses, WhatIsNotKnownIsNone) {
    EXPECT_THAT(explain_losses({{CounterSource::netdev, "interface", "rx_packets", 9},
                                {CounterSource::rdma, "rxe0", "duplicate_request", 9},
                                {CounterSource::qdisc, "interface", "tbf", 0}},
                               Judge::guest),
                IsEmpty());
}

}  // namespace
}  // namespace vfmgr::verify

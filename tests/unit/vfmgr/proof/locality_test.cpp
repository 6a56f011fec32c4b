// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/latency.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/rdma/counters.hpp"

namespace vfmgr::verify {
namespace {

std::vector<int> cpus_of(cpu_set_t const& set) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    return cpus;
}

std::vector<int> mine() {
    cpu_set_t set;
    EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    return cpus_of(set);
}

void nic_is_near(test::TemporaryFolder const& sysfs, std::string const& cpus) {
    std::filesystem::create_directories(sysfs.file("class/net/interface/lower_pf0"));
    std::filesystem::create_directories(sysfs.file("class/net/pf0/device"));
    std::ofstream(sysfs.file("class/net/pf0/device/local_cpulist")) << cpus << "\n";
}

TEST(Locality, ACpuListIsRangesAndNumbers) {
    using Cpus = std::vector<int>;
    EXPECT_EQ(cpus_of(*parse_cpu_list("3")), (Cpus{3}));
    EXPECT_EQ(cpus_of(*parse_cpu_list("0-2,5,7-8")), (Cpus{0, 1, 2, 5, 7, 8}));
    for (auto const* wrong : {"", "-", "1-", "-1", "2-1", "1,", ",1", "1,,2", "1024", "a", "1 2"})
        EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

TEST(Locality, AThreadRunsNearTheNicAndThenWhereItRanBefore) {
    auto const before = mine();
    test::TemporaryFolder const sysfs;
    nic_is_near(sysfs, fmt::format("{},1023", before.back()));
    {
        NearNic const near("interface", sysfs.file(""));
        EXPECT_EQ(mine(), std::vector<int>{before.back()});
    }
    EXPECT_EQ(mine(), before);
}

TEST(Locality, WhereNothingIsKnownOrAllowedNothingChanges) {
    auto const before = mine();
    test::TemporaryFolder const sysfs;
    nic_is_near(sysfs, "1023");
    for (auto const* ifname : {"interface", "none"}) {
        NearNic const near(ifname, sysfs.file(""));
        EXPECT_EQ(mine(), before);
    }
}

TEST(NetdevStack, BeginsWithTheNetdevAndGoesDownToTheNic) {
    test::TemporaryFolder const sysfs;
    nic_is_near(sysfs, "0");
    EXPECT_EQ(stack_of(sysfs.file(""), "interface"),
              (std::vector<std::string>{"interface", "pf0"}));
    EXPECT_EQ(pci_netdev(sysfs.file(""), "interface").filename(), "pf0");
    EXPECT_EQ(pci_netdev(sysfs.file(""), "none").filename(), "none");
}

}  // namespace
}  // namespace vfmgr::verify

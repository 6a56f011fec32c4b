// SPDX-License-Identifier: Apache-2.0
// What systemd is configured to expect of vfmgrd and the broker fits what they do.
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <map>

#include "service/run.hpp"
#include "tests/unit/repository.hpp"
#include "vfmgr/kernel/remote_kernel.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr auto libvirt_time = 30s;  // for the first observation

std::map<std::string, std::string> unit(char const* name = "vfmgrd.service") {
    std::ifstream file(test::repository() / "deploy/systemd" / name);
    std::map<std::string, std::string> settings;
    for (std::string line; std::getline(file, line);)
        if (auto const at = line.find('='); at != std::string::npos && line[0] != '#')
            settings[line.substr(0, at)] = line.substr(at + 1);
    return settings;
}

std::chrono::seconds seconds_of(std::string const& text) {
    int count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    EXPECT_EQ(text, std::to_string(count) + "s");
    return std::chrono::seconds(count);
}

TEST(Unit, GivesAStopTheTimeOfItsOperations) {
    EXPECT_GT(seconds_of(unit().at("TimeoutStopSec")), last_answers_time + stop_patience);
}

TEST(Unit, LeavesVfmgrdNoPrivilege) {
    for (auto const* const name : {"vfmgrd.service", "vfmgr-restore.service"}) {
        EXPECT_EQ(unit(name).at("User"), "vfmgrd");
        EXPECT_EQ(unit(name).at("CapabilityBoundingSet"), "");
    }
    EXPECT_EQ(unit("vfmgr-guestd.service").at("User"), "vfmgr-guestd");
    EXPECT_EQ(unit("vfmgr-guestd.service").at("CapabilityBoundingSet"), "");
    EXPECT_FALSE(unit("vfmgr-broker.service").contains("User"));
    for (auto const* const name : {"vfmgr-broker.socket", "vfmgr-guestd.socket"}) {
        EXPECT_EQ(unit(name).at("SocketUser"), "vfmgrd");
        EXPECT_EQ(unit(name).at("SocketMode"), "0600");
    }
}

TEST(Unit, ReloadsByTheSignalThatVfmgrdTakes) {
    EXPECT_EQ(unit().at("Type"), "notify");
    EXPECT_EQ(unit().at("ExecReload"), "/bin/kill -HUP $MAINPID");
}

TEST(Unit, LeavesAWorkerItsStep) {
    auto const broker = unit("vfmgr-broker.service");
    EXPECT_EQ(broker.at("KillMode"), "process");
    EXPECT_FALSE(broker.contains("RuntimeMaxSec"));
}

TEST(Unit, GivesAStartTheTimeOfTheFirstLook) {
    EXPECT_GT(seconds_of(unit().at("TimeoutStartSec")), RemoteKernelTimes{}.observe + libvirt_time);
}

}  // namespace
}  // namespace vfmgr

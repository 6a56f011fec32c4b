// SPDX-License-Identifier: Apache-2.0
// vfctl firmware against an API that answers from a list; systemctl is a program of the test.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "service/cli/firmware_words.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;
using test::Api;
using test::vfctl;
using testing::HasSubstr;

constexpr auto first = "0000:3b:00.0";
constexpr auto second = "0000:af:00.0";

json card(std::string const& pci, std::string const& pending) {
    bool const waits = pending != "none";
    return {{"pci", pci},
            {"functions", {pci, pci.substr(0, 11) + "1"}},
            {"device_type", "ConnectX6DX"},
            {"tool", {{"name", "mstconfig"}, {"version", "mstflint 4.21.0"}}},
            {"default", {{"SRIOV_EN", false}, {"NUM_OF_VFS", 0}}},
            {"current", {{"SRIOV_EN", true}, {"NUM_OF_VFS", 8}}},
            {"next", {{"SRIOV_EN", true}, {"NUM_OF_VFS", waits ? 16 : 8}}},
            {"counts_per_port", false},
            {"devlink", {{{"name", "enable_roce"}, {"mode", "driverinit"}, {"value", "true"}}}},
            {"boot_id", "boot 1"},
            {"problem", nullptr},
            {"pending", pending == "-" ? json(nullptr) : json(pending)},
            {"in_use", {"VF 2 of ens1 is attached to vm1 (attachment 3f9c2b1d)"}},
            {"tries", nullptr}};
}

json cards(std::string const& pending) {
    return {{"items", {card(first, pending), card(second, pending)}}, {"next", nullptr}};
}

json plan(std::string const& pci) {
    return {{"plan",
             {{"steps",
               {{{"step", "set_firmware"},
                 {"sentence", "set in the firmware of " + pci + ": NUM_OF_VFS=16"}}}},
              {"blast_radius", json::array()},
              {"notes", {"one reboot serves all cards"}}}}};
}

std::string put(std::string const& pci) {
    return "PUT /v1/pfs/" + pci + "/firmware";
}

// Both cards can be planned and accept it; no VM has a VF.
void accept_all(Api& api, std::string const& pending) {
    api.on("GET /v1/host/firmware", 200, cards(pending));
    for (auto const* const pci : {first, second}) {
        api.on(put(pci) + " dry_run=true", 200, plan(pci));
        auto queued = test::operation(OperationState::queued);
        queued.id = std::string("op") + pci;
        api.on(put(pci), 202, queued);
        api.on(std::string("GET /v1/operations/op") + pci + " wait=60", 200,
               test::operation(OperationState::succeeded));
    }
    api.on("GET /v1/attachments", 200, {{"items", json::array()}, {"next", nullptr}});
}

// A systemctl, first in PATH, that only records that it was called.
class Systemctl {
  public:
    Systemctl() : path_(std::getenv("PATH")) {
        auto const program = folder_.path() / "systemctl";
        std::ofstream(program) << "#!/bin/sh\necho \"$@\" >> \"$0.calls\"\n";
        std::filesystem::permissions(program, std::filesystem::perms::owner_all);
        ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    }
    ~Systemctl() { ::setenv("PATH", path_.c_str(), 1); }
    Systemctl(Systemctl const&) = delete;
    Systemctl& operator=(Systemctl const&) = delete;
    [[nodiscard]] std::string calls() const {
        std::ostringstream text;
        text << std::ifstream(folder_.path() / "systemctl.calls").rdbuf();
        return text.str();
    }

  private:
    test::TemporaryFolder folder_;
    std::string const path_;
};

std::vector<std::string> set(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"firmware", "set", first, second, "NUM_OF_VFS=16"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(FirmwareWords, AreMlxconfigs) {
    auto const read = firmware_words({"SRIOV_EN=1", "ens1", "NUM_OF_VFS=16", "LINK_TYPE_P1=eth",
                                      "ens2", "LINK_TYPE_P2=1", "ATS_ENABLED=False"});
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(read->pfs, (std::vector<std::string>{"ens1", "ens2"}));
    EXPECT_EQ(read->settings, (FirmwareSettings{true, 16, PortType::eth, PortType::ib, false}));
}

TEST(FirmwareWords, RefuseWhatIsNone) {
    for (auto const& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"ens1"}, "no setting is named"},
             {{"NUM_OF_VFS=1"}, "no PF is named"},
             {{"ens1", "NUM_OF_VFS=-1"}, "NUM_OF_VFS is a number from 0 to 65535"},
             {{"ens1", "NUM_OF_VFS=65536"}, "from 0 to 65535"},
             {{"ens1", "SRIOV_EN=2"}, "True or False, not '2'"},
             {{"ens1", "SRIOV_EN="}, "True or False, not ''"},
             {{"ens1", "LINK_TYPE_P1=4"}, "one of IB, ETH, VPI, not '4'"},
             {{"ens1", "NUM_OF_VFS=1", "NUM_OF_VFS=2"}, "NUM_OF_VFS is given twice"},
             {{"ens1", "num_of_vfs=1"}, "'num_of_vfs' is not one of the settings"},
             {{"ens1", "KEEP_ETH_LINK_UP_P1=1"}, "is not one of the settings"}}) {
        auto const read = firmware_words(words);
        ASSERT_FALSE(read) << words.back();
        EXPECT_EQ(read.error().problem, Problem::invalid_request);
        EXPECT_THAT(read.error().detail, HasSubstr(why));
    }
}

TEST(VfctlFirmware, ListsAndShows) {
    Api api;
    api.on("GET /v1/host/firmware", 200, cards("reboot"));
    auto const list = vfctl(api, {"firmware", "list"});
    EXPECT_EQ(list.code, 0) << list.err;
    EXPECT_THAT(list.out, HasSubstr("CARD          TYPE         SRIOV_EN  NUM_OF_VFS"));
    EXPECT_THAT(list.out, HasSubstr("0000:3b:00.0  ConnectX6DX  True      8 -> 16"));
    EXPECT_EQ(vfctl(api, {"-j", "firmware", "list"}).out, cards("reboot").dump() + "\n");
    api.on("GET /v1/pfs/0000:3b:00.0/firmware", 200, card(first, "power_cycle"));
    auto const page = vfctl(api, {"firmware", "show", first});
    EXPECT_THAT(page.out, HasSubstr("NUM_OF_VFS    0        8        16"));
    EXPECT_THAT(page.out, HasSubstr("a reboot did not apply it"));
    EXPECT_THAT(page.out, HasSubstr("attached to vm1"));
    EXPECT_THAT(page.out, HasSubstr("enable_roce true (driverinit)"));
    auto unread = card(first, "none");
    unread["problem"] = {{"code", "unsupported"}, {"detail", "locked down"}, {"remedy", "BIOS"}};
    unread["next"] = nullptr;
    Api other;
    other.on("GET /v1/pfs/0000:3b:00.0/firmware", 200, unread);
    EXPECT_THAT(vfctl(other, {"firmware", "show", first}).out,
                HasSubstr("problem    locked down\nremedy     BIOS"));
}

TEST(VfctlFirmware, PlansSeveralCardsAsOne) {
    Api api;
    accept_all(api, "none");
    auto const ran = vfctl(api, set({"0000:3b:00.1", "--dry-run"}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("1. set in the firmware of 0000:3b:00.0: NUM_OF_VFS=16\n  2. "
                                   "set in the firmware of 0000:af:00.0"));
    EXPECT_EQ(ran.out.find("one reboot"), ran.out.rfind("one reboot")) << "once";
    EXPECT_THAT(api.lines(), testing::Not(testing::Contains(put(first))));
}

TEST(VfctlFirmware, OneThatRefusesStopsAllBeforeAnyIsTouched) {
    Api api;
    api.on("GET /v1/host/firmware", 200, cards("none"));
    api.on(put(first) + " dry_run=true", 200, plan(first));
    api.refuse(put(second) + " dry_run=true", {Problem::vf_in_use, "VFs are in use", "drain"});
    auto const ran = vfctl(api, set());
    EXPECT_EQ(ran.code, 4);
    EXPECT_THAT(ran.err, HasSubstr("VFs are in use"));
    EXPECT_THAT(api.lines(), testing::Not(testing::Contains(put(first))));
}

TEST(VfctlFirmware, TellsThatARebootIsPending) {
    Systemctl const systemctl;
    Api api;
    accept_all(api, "reboot");
    auto const ran = vfctl(api, set());
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("pending reboot"));
    EXPECT_EQ(json::parse(api.asked(put(second)).body), (json{{"settings", {{"NUM_OF_VFS", 16}}}}));
    EXPECT_EQ(systemctl.calls(), "");
}

TEST(VfctlFirmware, RebootsOnceAllCardsHaveIt) {
    Systemctl const systemctl;
    Api api;
    accept_all(api, "reboot");
    auto const ran = vfctl(api, set({"--reboot"}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(systemctl.calls(), "reboot\n");
}

TEST(VfctlFirmware, DoesNotRebootWhereNothingIsPendingOrNobodyCanTell) {
    Systemctl const systemctl;
    {
        Api api;
        accept_all(api, "none");
        auto const ran = vfctl(api, set({"--reboot"}));
        EXPECT_EQ(ran.code, 0) << ran.err;
        EXPECT_THAT(ran.err, HasSubstr("no reboot is needed"));
    }
    Api api;
    accept_all(api, "-");
    auto const ran = vfctl(api, set({"--reboot"}));
    EXPECT_EQ(ran.code, 4);
    EXPECT_THAT(ran.err, HasSubstr("does not report its current settings"));
    EXPECT_EQ(systemctl.calls(), "");
}

TEST(VfctlFirmware, DoesNotRebootUnderVms) {
    Systemctl const systemctl;
    Api api;
    api.on("GET /v1/attachments", 200, {{"items", {{{"vm", "vm1"}}}}, {"next", nullptr}});
    accept_all(api, "reboot");
    auto const ran = vfctl(api, set({"--reboot"}));
    EXPECT_EQ(ran.code, 4);
    EXPECT_THAT(ran.err, HasSubstr("VFs are attached to vm1"));
    EXPECT_THAT(api.lines(), testing::Not(testing::Contains(put(first)))) << "nothing is begun";
    EXPECT_EQ(systemctl.calls(), "");
}

TEST(VfctlFirmware, DoesNotRebootWhenACardDidNotTakeIt) {
    Systemctl const systemctl;
    Api api;
    api.on(std::string("GET /v1/operations/op") + second + " wait=60", 200, [] {
        auto failed = test::operation(OperationState::failed);
        failed.problem = Error{Problem::kernel_refused, "mstconfig did not set it", ""};
        return failed;
    }());
    accept_all(api, "reboot");
    auto const ran = vfctl(api, set({"--reboot"}));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("mstconfig did not set it"));
    EXPECT_EQ(systemctl.calls(), "");
}

TEST(VfctlFirmware, RebootsOnlyTheHostThatItRunsOn) {
    Api api;
    EXPECT_EQ(vfctl(api, set({"--reboot", "--no-wait"})).code, 2);
    EXPECT_TRUE(api.lines().empty());
}

}  // namespace
}  // namespace vfmgr

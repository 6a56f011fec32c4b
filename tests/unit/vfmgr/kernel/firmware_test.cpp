// SPDX-License-Identifier: Apache-2.0
// A card's firmware behind a program that is called and answers like mstconfig: its layout and its
// error messages are those of the published recordings, the values are made up. It was never tested
// against the real one, nor against a real card.
#include "vfmgr/kernel/firmware.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/kernel/host_tree.hpp"
#include "vfmgr/kernel/steps.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::HostTree;
using test::pci;
using testing::HasSubstr;

// Keeps default, current and next of each setting in a file, "8 8 16". The content of "is" in the
// folder decides how it misbehaves: locked, hangs, deaf (reports success and does nothing), silent.
constexpr auto tool_script = R"sh(#!/bin/sh
state=$(dirname "$0")/../card
printf '%s\n' "$*" >> "$state/calls"
if [ "$1" = --version ]; then echo "mstconfig, mstflint 4.21.0-1, Git SHA Hash: N/A"; exit 0; fi
if [ -e "$state/is/hangs" ]; then exec cat "$state/is/hangs"; fi
if [ -e "$state/is/silent" ]; then exit 0; fi
if [ -e "$state/is/locked" ]; then
    echo 'write counter to semaphore: Operation not permitted' >&2
    echo '-E- Failed to open the device' >&2
    exit 3
fi
header() {
    printf '\nDevice #1:\n----------\n\nDevice type:    ConnectX6DX     \n'
    printf 'Name:           X\nDevice:         %s    \n\n' "$1"
}
if [ "$1 $2 $4" = "-e -d q" ]; then
    header "$3"
    printf '%-45s%-16s%-16s%-16s\n' Configurations: Default Current "Next Boot"
    for setting in "$state"/settings/*; do
        read -r default current next < "$setting"
        star=' '; [ "$next" = "$default" ] || star='*'
        printf '%s        %-36s%-16s%-16s%-16s\n' "$star" "${setting##*/}" $default $current $next
    done
    exit 0
fi
[ "$1 $2 $4" = "-y -d set" ] || { echo "-E- Apply new Configuration? (y/n) [n] :" >&2; exit 1; }
device=$3; shift 4
for change; do
    name=${change%%=*}; value=${change#*=}
    [ -e "$state/settings/$name" ] || { echo "-E- Unknown Parameter: $name" >&2; exit 2; }
    [ "$value" != 999 ] || { echo "-E- Failed to set configuration" >&2; exit 2; }
    [ ! -e "$state/is/deaf" ] || continue
    read -r default current next < "$state/settings/$name"
    case $name=$value in SRIOV_EN=1) value='True(1)';; SRIOV_EN=0) value='False(0)';;
        LINK_TYPE*=1) value='IB(1)';; LINK_TYPE*=2) value='ETH(2)';; esac
    echo "$default $current $value" > "$state/settings/$name"
done
header "$device"
echo 'Applying... Done!'
echo '-I- Please reboot machine to load new configurations.'
)sh";

struct FirmwareTest : testing::Test {
    HostTree host;

    FirmwareTest() {
        add_function("0000:3b:00.0");
        add_function("0000:3b:00.1");
        fs::create_directories(card() / "is");
        set("SRIOV_EN", "False(0) True(1) True(1)");
        set("NUM_OF_VFS", "0 8 8");
        set("LINK_TYPE_P1", "IB(1) ETH(2) ETH(2)");
        set("MEMIC_SIZE_LIMIT", "_256KB(1) _256KB(1) _256KB(1)");
        host.write(host.roots().proc / "sys/kernel/random/boot_id", "boot 1\n");
        install("mstconfig");
    }
    [[nodiscard]] fs::path card() const { return host.roots().programs / "../card"; }
    void add_function(std::string const& address) const {
        host.add_device(address);
        host.write(host.device(address) / "vendor", "0x15b3\n");
    }
    void set(std::string const& name, std::string const& values) const {
        host.write(card() / "settings" / name, values + "\n");
    }
    void be(std::string const& how) const { host.write(card() / "is" / how, ""); }
    void install(std::string const& name) const {
        auto const program = host.roots().programs / name;
        host.write(program, tool_script);
        fs::permissions(program, fs::perms::owner_all);
    }
    [[nodiscard]] FirmwareCard read() const {
        return read_card(host.roots(), list_cards(host.roots()).value().at(0), soon());
    }
    [[nodiscard]] Result<Observed> perform(FirmwareSettings const& settings) const {
        return perform_step(host.roots(), SetFirmware{pci("0000:3b:00.0"), settings, {}}, soon());
    }
    [[nodiscard]] std::string calls() const { return host.read(card() / "calls"); }
    static Deadline soon() { return std::chrono::steady_clock::now() + 20s; }
    static FirmwareSettings vfs(std::uint16_t count) {
        FirmwareSettings settings;
        settings.num_of_vfs = count;
        return settings;
    }
};

TEST_F(FirmwareTest, PortsOfOneDeviceAreOneCard) {
    add_function("0000:af:00.0");
    host.add_device("0000:05:00.0");  // another vendor's
    add_function("0000:3b:00.2");     // a VF
    host.link(host.device("0000:3b:00.2") / "physfn", "../0000:3b:00.0");
    add_function("0000:b0:00.0");  // a BlueField's other function
    host.write(host.device("0000:b0:00.0") / "class", "0x0c0330\n");
    auto const cards = list_cards(host.roots()).value();
    EXPECT_EQ(cards, (std::vector<CardFunctions>{
                         {pci("0000:3b:00.0"), {pci("0000:3b:00.0"), pci("0000:3b:00.1")}},
                         {pci("0000:af:00.0"), {pci("0000:af:00.0")}}}));
}

TEST_F(FirmwareTest, IsReadAsTheToolPrintsIt) {
    set("NUM_OF_VFS", "0 8 16");
    auto const seen = read();
    EXPECT_FALSE(seen.problem) << seen.problem->detail;
    EXPECT_EQ(seen.tool, (FirmwareTool{"mstconfig", "mstflint 4.21.0-1, Git SHA Hash: N/A"}));
    EXPECT_EQ(seen.device_type, "ConnectX6DX");
    EXPECT_EQ(seen.functions.size(), 2U);
    EXPECT_EQ(seen.boot_id, "boot 1");
    EXPECT_EQ(seen.by_default, (FirmwareSettings{false, 0, PortType::ib, {}, {}}));
    EXPECT_EQ(seen.current, (FirmwareSettings{true, 8, PortType::eth, {}, {}}));
    EXPECT_EQ(seen.next, (FirmwareSettings{true, 16, PortType::eth, {}, {}}));
    EXPECT_FALSE(seen.counts_per_port);
    EXPECT_EQ(calls(), "--version\n-e -d 0000:3b:00.0 q\n");
}

TEST_F(FirmwareTest, AValueThatMeansNothingIsNone) {
    set("LINK_TYPE_P1", "IB(1) UNKNOWN(9) ETH(2)");
    set("NUM_OF_VFS", "0 70000 8");
    set("PF_NUM_OF_VF_VALID", "False(0) True(1) True(1)");
    auto const seen = read();
    EXPECT_EQ(seen.current, (FirmwareSettings{true, {}, {}, {}, {}}));
    EXPECT_TRUE(seen.counts_per_port);
}

TEST_F(FirmwareTest, MlxconfigDoesWhereThereIsNoMstconfig) {
    fs::remove(host.roots().programs / "mstconfig");
    auto const none = read();
    EXPECT_EQ(none.problem->problem, Problem::unsupported);
    EXPECT_THAT(none.problem->remedy, HasSubstr("install mstflint"));
    EXPECT_FALSE(none.tool);
    EXPECT_EQ(perform(vfs(16)).error(), *none.problem);
    install("mlxconfig");
    EXPECT_EQ(read().tool->name, "mlxconfig");
}

TEST_F(FirmwareTest, NamesLockdownWhereItIsThat) {
    be("locked");
    host.write(host.roots().sysfs / "kernel/security/lockdown",
               "none [integrity] confidentiality\n");
    auto const locked = read().problem.value();
    EXPECT_EQ(locked.problem, Problem::unsupported);
    EXPECT_THAT(locked.detail, HasSubstr("the kernel is locked down (Secure Boot), so mstconfig "
                                         "can't read the settings of 0000:3b:00.0: write counter "
                                         "to semaphore: Operation not permitted"));
    EXPECT_THAT(locked.remedy, HasSubstr("BIOS"));
    host.write(host.roots().sysfs / "kernel/security/lockdown",
               "[none] integrity confidentiality\n");
    EXPECT_THAT(read().problem->remedy, HasSubstr("CAP_SYS_ADMIN"));
    EXPECT_EQ(perform(vfs(16)).error().problem, Problem::unsupported);
}

TEST_F(FirmwareTest, AToolThatSaysNothingIsNoCardWithoutSettings) {
    be("silent");
    auto const problem = read().problem.value();
    EXPECT_EQ(problem.problem, Problem::kernel_refused);
    EXPECT_THAT(problem.detail, HasSubstr("exit status 0"));
}

TEST_F(FirmwareTest, AToolThatHangsIsEndedAtTheDeadline) {
    ASSERT_EQ(::mkfifo((card() / "is/hangs").c_str(), 0600), 0);
    auto const began = std::chrono::steady_clock::now();
    auto const done =
        perform_step(host.roots(), SetFirmware{pci("0000:3b:00.0"), vfs(16), {}}, began + 300ms);
    EXPECT_EQ(done.error().problem, Problem::timed_out);
    EXPECT_THAT(done.error().detail, HasSubstr("mstconfig did not read the settings of"));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

TEST_F(FirmwareTest, IsSetForTheNextResetOnly) {
    auto requested = vfs(16);
    requested.sriov_en = true;  // holds already
    requested.link_type_p1 = PortType::ib;
    ASSERT_TRUE(perform(requested));
    EXPECT_THAT(calls(), HasSubstr("-y -d 0000:3b:00.0 set NUM_OF_VFS=16 LINK_TYPE_P1=1\n"));
    EXPECT_EQ(read().current, (FirmwareSettings{true, 8, PortType::eth, {}, {}}));
    EXPECT_EQ(read().next, (FirmwareSettings{true, 16, PortType::ib, {}, {}}));
}

TEST_F(FirmwareTest, WhatIsSoAlreadyIsNotSet) {
    ASSERT_TRUE(perform(vfs(8)));
    EXPECT_EQ(calls().find("set"), std::string::npos);
}

TEST_F(FirmwareTest, ARefusalIsToldInTheToolsWords) {
    auto const refused = perform(vfs(999)).error();
    EXPECT_EQ(refused.problem, Problem::kernel_refused);
    EXPECT_EQ(refused.detail,
              "mstconfig failed to set NUM_OF_VFS=999 on 0000:3b:00.0: -E- Failed to "
              "set configuration");
}

TEST_F(FirmwareTest, WhatTheCardDidNotKeepIsARefusal) {
    be("deaf");
    auto const refused = perform(vfs(16)).error();
    EXPECT_EQ(refused.problem, Problem::kernel_refused);
    EXPECT_THAT(refused.detail, HasSubstr("the card has NUM_OF_VFS=8 for its next reset"));
}

}  // namespace
}  // namespace vfmgr

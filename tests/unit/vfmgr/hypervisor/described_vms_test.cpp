// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/described_vms.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string const uuid = "11111111-2222-3333-4444-000000000001";

// libvirtd's folders with a persistent VM that runs. Time is an hour ahead: the files are at rest.
struct Bench {
    test::TemporaryFolder dir;
    LibvirtFolders folders{dir.path() / "config", dir.path() / "status"};
    FakeClock clock;
    DescribedVms described_vms{folders, clock};
    ListedVm vm{uuid, "vm1", 3, true, {"vfs"}};
    int described = 0;

    Bench() {
        fs::create_directory(folders.config);
        fs::create_directory(folders.status);
        replace(config());
        replace(status());
        auto const ahead = std::chrono::system_clock::now() + 1h - clock.now();
        clock.advance(std::chrono::duration_cast<std::chrono::milliseconds>(ahead));
    }
    [[nodiscard]] fs::path config() const { return folders.config / "vm1.xml"; }
    [[nodiscard]] fs::path status() const { return folders.status / "vm1.xml"; }

    // As virFileRewrite() does it.
    static void replace(fs::path const& file) {
        auto const made = file.string() + ".new";
        std::ofstream(made) << "<domain/>";
        fs::rename(made, file);
    }
    // Counts descriptions, and returns the number of the one that the answer is from.
    std::uint32_t look(ListedVm const& listed) {
        auto const found = described_vms.find(listed, [&]() -> Result<VmInfo> {
            VmInfo info;
            info.uuid = listed.uuid;
            info.free_pcie_ports = static_cast<std::uint32_t>(++described);
            return info;
        });
        return found.value().free_pcie_ports;
    }
    std::uint32_t look() { return look(vm); }
};

struct stat state_of(fs::path const& file) {
    struct stat state{};
    ::stat(file.c_str(), &state);
    return state;
}

TEST(DescribedVms, AVmWhoseFilesAreUnchangedIsNotDescribedAgain) {
    Bench bench;
    for (int look = 0; look < 3; ++look) EXPECT_EQ(bench.look(), 1U);
    EXPECT_EQ(bench.described, 1);
}

TEST(DescribedVms, EachFileThatLibvirtReplacesIsAChange) {
    Bench bench;
    std::uint32_t number = bench.look();
    for (auto const& file : {bench.config(), bench.status()}) {
        auto const before = state_of(file);
        Bench::replace(file);
        std::array const times{before.st_atim, before.st_mtim};
        ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times.data(), 0), 0);
        EXPECT_EQ(state_of(file).st_size, before.st_size);
        EXPECT_EQ(bench.look(), ++number) << file;
        EXPECT_EQ(bench.look(), number) << file;
    }
}

// The inode's number may be that of an earlier file: then ctime, which no program can set, differs.
TEST(DescribedVms, AFileWithTheSameInodeSizeAndMtimeIsAChange) {
    Bench bench;
    bench.look();
    auto const before = state_of(bench.config());
    std::array const times{before.st_atim, before.st_mtim};
    auto after = before;
    while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {  // a tick of the kernel's clock
        std::fstream(bench.config(), std::ios::in | std::ios::out) << "<sometxt/>";
        fs::resize_file(bench.config(), static_cast<std::uintmax_t>(before.st_size));
        ASSERT_EQ(::utimensat(AT_FDCWD, bench.config().c_str(), times.data(), 0), 0);
        after = state_of(bench.config());
    }
    ASSERT_EQ(std::pair(after.st_ino, after.st_size), std::pair(before.st_ino, before.st_size));
    ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    EXPECT_EQ(bench.look(), 2U);
}

TEST(DescribedVms, WhateverLibvirtListsOtherwiseIsAChange) {
    Bench bench;
    bench.look();
    auto restarted = bench.vm;
    restarted.start_id = 4;
    EXPECT_EQ(bench.look(restarted), 2U);
    auto other_networks = restarted;
    other_networks.hostdev_networks.clear();
    EXPECT_EQ(bench.look(other_networks), 3U);
    auto renamed = other_networks;
    renamed.name = "vm2";
    Bench::replace(bench.folders.config / "vm2.xml");
    Bench::replace(bench.folders.status / "vm2.xml");
    EXPECT_EQ(bench.look(renamed), 4U);
    EXPECT_EQ(bench.look(renamed), 4U);
}

// It starts, stops, or is defined just now; or libvirtd's folders are elsewhere.
TEST(DescribedVms, AFileThatIsMissingOrTooManyIsAChangeEachTime) {
    Bench bench;
    bench.look();
    auto transient = bench.vm;
    transient.persistent = false;
    EXPECT_EQ(bench.look(transient), 2U);
    EXPECT_EQ(bench.look(transient), 3U);
    auto stopped = bench.vm;
    stopped.start_id.reset();
    EXPECT_EQ(bench.look(stopped), 4U);
    EXPECT_EQ(bench.look(stopped), 5U);
    fs::remove(bench.config());
    EXPECT_EQ(bench.look(), 6U);
    EXPECT_EQ(bench.look(), 7U);
    EXPECT_EQ(bench.look(transient), 8U);
    EXPECT_EQ(bench.look(transient), 8U);
}

TEST(DescribedVms, AFileThatCantBeReadIsAChangeEachTime) {
    Bench bench;
    bench.look();
    fs::remove(bench.config());
    fs::create_symlink(bench.config(), bench.config());  // ELOOP, for root too
    EXPECT_EQ(bench.look(), 2U);
    EXPECT_EQ(bench.look(), 3U);
}

TEST(DescribedVms, AFileThatWasWrittenJustNowIsAChangeEachTime) {
    Bench bench;
    bench.clock.advance(-1h - 1s);
    EXPECT_EQ(bench.look(), 1U);
    EXPECT_EQ(bench.look(), 2U);
    bench.clock.advance(-1h);  // set back: the file seems to be from the future
    EXPECT_EQ(bench.look(), 3U);
    EXPECT_EQ(bench.look(), 4U);
    bench.clock.advance(3h);
    EXPECT_EQ(bench.look(), 5U);
    EXPECT_EQ(bench.look(), 5U);
}

TEST(DescribedVms, AnEventIsAChange) {
    Bench bench;
    bench.look();
    bench.described_vms.forget("11111111-2222-3333-4444-00000000000f");
    EXPECT_EQ(bench.look(), 1U);
    bench.described_vms.forget(uuid);
    EXPECT_EQ(bench.look(), 2U);
    bench.described_vms.forget_all();
    EXPECT_EQ(bench.look(), 3U);
}

TEST(DescribedVms, AnEventDuringADescriptionIsAChange) {
    Bench bench;
    auto const during = bench.described_vms.find(bench.vm, [&]() -> Result<VmInfo> {
        bench.described_vms.forget(uuid);
        return VmInfo{};
    });
    ASSERT_TRUE(during);
    EXPECT_EQ(bench.look(), 1U);
}

TEST(DescribedVms, AnErrorIsNotKept) {
    Bench bench;
    auto const gone = bench.described_vms.find(
        bench.vm, []() -> Result<VmInfo> { return fail(Problem::not_found, "gone", ""); });
    EXPECT_FALSE(gone);
    EXPECT_EQ(bench.look(), 1U);
}

TEST(DescribedVms, AVmThatLibvirtNoLongerListsIsForgotten) {
    Bench bench;
    bench.look();
    bench.described_vms.forget_all_but({{uuid, {}}});
    EXPECT_EQ(bench.look(), 1U);
    bench.described_vms.forget_all_but({});
    EXPECT_EQ(bench.look(), 2U);
}

TEST(DescribedVms, OnlyTheHostsOwnLibvirtHasFilesHere) {
    EXPECT_TRUE(folders_of("qemu:///system"));
    for (auto const* const uri : {"qemu:///session", "qemu+ssh://host/system", "test:///default",
                                  "qemu+unix:///system?socket=/run/other"})
        EXPECT_FALSE(folders_of(uri)) << uri;
    Bench bench;
    bench.described_vms.forget_all();
    DescribedVms elsewhere(std::nullopt, bench.clock);
    int described = 0;
    for (int look = 0; look < 2; ++look)
        EXPECT_TRUE(elsewhere.find(bench.vm, [&]() -> Result<VmInfo> {
            ++described;
            return VmInfo{};
        }));
    EXPECT_EQ(described, 2);
}

}  // namespace
}  // namespace vfmgr

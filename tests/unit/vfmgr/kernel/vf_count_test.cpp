// SPDX-License-Identifier: Apache-2.0
#include "host_tree.hpp"
#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/kernel/worker_process.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::HostTree;
using test::pci;
using test::Reaction;
using test::soon;
using test::SysfsReactions;

std::string const resized = "0000:01:00.0";

// The kernel's side of sriov_numvfs, with at most `made_max` VFs.
struct Resizing : HostTree {
    explicit Resizing(int made_max = 100) : made_max_(made_max) { add_pf(resized, 7); }

    [[nodiscard]] SysfsReactions react(std::string const& file = "sriov_numvfs") {
        auto const numvfs = device(resized) / file;
        return SysfsReactions({{numvfs, [this](std::string const& text) {
                                    for (char const digit : text) resize(std::string(1, digit));
                                }}});
    }
    [[nodiscard]] Result<Observed> set(int count, Deadline deadline = soon()) const {
        return perform_step(roots(), SetNumVfs{pci(resized), static_cast<std::uint16_t>(count)},
                            deadline);
    }
    [[nodiscard]] std::string autoprobe() const {
        return read(device(resized) / "sriov_drivers_autoprobe");
    }
    std::vector<std::string> writes;

  private:
    void resize(std::string const& text) {
        writes.push_back(text);
        for (int i = 0; i < 7; ++i) fs::remove(device(resized) / ("virtfn" + std::to_string(i)));
        for (int i = 0; i < std::min(std::stoi(text), made_max_); ++i)
            add_vf(resized, i, "0000:01:10." + std::to_string(i));
    }
    int made_max_;
};

using SetNumVfsStep = test::Networked;

TEST_F(SetNumVfsStep, MakesVfs) {
    Resizing tree;
    {
        auto const kernel = tree.react();
        auto const done = tree.set(4);
        ASSERT_TRUE(done) << done.error().detail;
    }
    EXPECT_EQ(tree.writes, std::vector<std::string>{"4"});
    EXPECT_EQ(tree.autoprobe(), "1");
    EXPECT_EQ(list_vfs(tree.roots(), pci(resized)).value().size(), 4U);
}

TEST_F(SetNumVfsStep, OlderMlx5DriversHaveAFileOfTheirOwn) {
    Resizing tree;
    fs::remove(tree.device(resized) / "sriov_numvfs");
    auto const refused = tree.set(4);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().remedy, "bind the PF to a driver that can create VFs");
    {
        auto const kernel = tree.react("mlx5_num_vfs");
        auto const done = tree.set(4);
        ASSERT_TRUE(done) << done.error().detail;
    }
    EXPECT_EQ(tree.writes, std::vector<std::string>{"4"});
}

// Another program's write to another PF's file, which does not return.
struct Elsewhere : Resizing {
    explicit Elsewhere(std::string const& comm) {
        add_pf("0000:02:00.0", 7);
        add_process(812, comm);
        give_descriptor(812, 1, device("0000:02:00.0") / "sriov_numvfs");
        write(roots().proc / "812/fdinfo/1", "pos:\t0\nflags:\t0100001\n");
        write(roots().proc / "812/task/812/wchan", "vfio_unregister_group_dev");
        write(roots().proc / "812/task/812/stat", "812 (x) S 1");
    }
};

TEST_F(SetNumVfsStep, BehindAChangeElsewhereThatHangsNothingIsBegun) {
    Elsewhere const tree("bash");
    auto const busy = tree.set(4, std::chrono::steady_clock::now() + std::chrono::seconds(1));
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().problem, Problem::pci_busy);
    EXPECT_NE(busy.error().detail.find("bash (pid 812) changes the number of VFs of 0000:02:00.0 "
                                       "and hangs in vfio_unregister_group_dev"),
              std::string::npos)
        << busy.error().detail;
    EXPECT_EQ(tree.read(tree.device(resized) / "sriov_numvfs"), "untouched");
}

TEST_F(SetNumVfsStep, AChangeElsewhereIsWaitedFor) {
    Elsewhere tree("");
    auto const comm = tree.roots().proc / "812/comm";
    fs::remove(comm);
    ASSERT_EQ(::mkfifo(comm.c_str(), 0600), 0);
    auto const kernel = tree.react();
    std::thread other([&] {
        FileDescriptor const asked(::open(comm.c_str(), O_WRONLY | O_CLOEXEC));  // it was read
        fs::remove_all(tree.roots().proc / "812/fd");
        EXPECT_GT(::write(asked.get(), worker_comm, std::strlen(worker_comm)), 0);
    });
    auto const done = tree.set(4);
    other.join();
    EXPECT_TRUE(done) << done.error().detail;
}

TEST_F(SetNumVfsStep, SwitchesAutoprobeOffAndBackToWhatItWas) {
    Resizing tree;
    auto const file = tree.device(resized) / "sriov_drivers_autoprobe";
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);  // keeps writes one after the other
    FileDescriptor const fifo(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::write(fifo.get(), "1\n", 2), 2);
    {
        auto const kernel = tree.react();
        auto const done = tree.set(4);
        ASSERT_TRUE(done) << done.error().detail;
    }
    std::array<char, 16> written{};
    ASSERT_EQ(::read(fifo.get(), written.data(), written.size()), 2);
    EXPECT_EQ(std::string(written.data()), "01");
}

// udev is stuck in a rule: the host must not stay without autoprobe because of that.
TEST_F(SetNumVfsStep, ASilentUdevIsWaitedForUntilTheDeadline) {
    Resizing tree;
    tree.write(tree.roots().udev / "control", "");
    auto const kernel = tree.react();
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    auto const done = tree.set(4, deadline);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_GE(std::chrono::steady_clock::now(), deadline);
    EXPECT_EQ(tree.autoprobe(), "1");
}

TEST_F(SetNumVfsStep, GoesThroughZero) {
    Resizing tree;
    tree.add_vf(resized, 0, "0000:01:10.0");
    {
        auto const kernel = tree.react();
        auto const done = tree.set(5);
        ASSERT_TRUE(done) << done.error().detail;
    }
    EXPECT_EQ(tree.writes, (std::vector<std::string>{"0", "5"}));
}

TEST_F(SetNumVfsStep, RemovesAll) {
    Resizing tree;
    tree.add_vf(resized, 0, "0000:01:10.0");
    {
        auto const kernel = tree.react();
        ASSERT_TRUE(tree.set(0));
    }
    EXPECT_EQ(tree.writes, std::vector<std::string>{"0"});
    EXPECT_TRUE(list_vfs(tree.roots(), pci(resized)).value().empty());
}

TEST_F(SetNumVfsStep, WhatIsThereAlreadyIsNotWritten) {
    Resizing tree;
    tree.add_vf(resized, 0, "0000:01:10.0");
    EXPECT_TRUE(tree.set(1));
    EXPECT_EQ(tree.read(tree.device(resized) / "sriov_numvfs"), "untouched");
    EXPECT_EQ(tree.autoprobe(), "1\n");
}

TEST_F(SetNumVfsStep, MoreThanTheDeviceHasIsRefusedUntouched) {
    Resizing tree;
    auto const refused = tree.set(8);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
    EXPECT_EQ(refused.error().detail, "0000:01:00.0 allows 7 VFs, 8 were requested");
    EXPECT_EQ(tree.read(tree.device(resized) / "sriov_numvfs"), "untouched");
}

// Within the time that a creation has (engine/execute.cpp): the driver's answer does not change.
TEST_F(SetNumVfsStep, FewerThanAskedForIsAnErrorSoon) {
    Resizing tree(3);
    auto const kernel = tree.react();
    auto const begun = std::chrono::steady_clock::now();
    auto const refused = tree.set(5, begun + std::chrono::minutes(3));
    EXPECT_LT(std::chrono::steady_clock::now(), begun + std::chrono::seconds(30));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::kernel_refused);
    EXPECT_EQ(refused.error().detail, "5 VFs were requested on 0000:01:00.0, 3 appeared");
}

TEST_F(SetNumVfsStep, ARefusedWriteNamesErrnoAndPutsAutoprobeBack) {
    Resizing tree;
    fs::remove(tree.device(resized) / "sriov_numvfs");
    auto const refused = tree.set(5);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::kernel_refused);
    EXPECT_NE(refused.error().detail.find("5 VFs could not be created on 0000:01:00.0"),
              std::string::npos);
    EXPECT_EQ(refused.error().causes.at(0).code, "ENOENT");
    EXPECT_EQ(refused.error().remedy, "bind the PF to a driver that can create VFs");
    EXPECT_EQ(tree.autoprobe(), "1");
}

TEST_F(SetNumVfsStep, ARefusedRemovalSaysSo) {
    Resizing tree;
    tree.add_vf(resized, 0, "0000:01:10.0");
    fs::remove(tree.device(resized) / "sriov_numvfs");
    for (int const count : {0, 5}) {
        auto const refused = tree.set(count);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().detail,
                  "the VFs of 0000:01:00.0 could not be removed: No such file or directory");
    }
}

TEST_F(SetNumVfsStep, AVfInUseKeepsAllOfThem) {
    Resizing tree;
    tree.add_vf(resized, 0, "0000:01:10.0");
    tree.add_vf(resized, 1, "0000:01:10.1");
    tree.put_in_group("0000:01:10.1", 13);
    tree.make_group_node(13);
    tree.add_process(812, "qemu-system-x86");
    tree.give_descriptor(812, 33, "/dev/null");
    for (int const count : {0, 1, 5}) {
        auto const refused = tree.set(count);
        ASSERT_FALSE(refused) << count;
        EXPECT_EQ(refused.error().problem, Problem::vf_in_use);
        EXPECT_NE(refused.error().detail.find("VF 1 of 0000:01:00.0"), std::string::npos);
    }
    EXPECT_EQ(tree.read(tree.device(resized) / "sriov_numvfs"), "untouched");
    EXPECT_EQ(tree.autoprobe(), "1\n");
}

TEST_F(SetNumVfsStep, NoSuchPfIsNotFound) {
    HostTree const tree;
    auto const missing = perform_step(tree.roots(), SetNumVfs{pci(resized), 1}, soon());
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().problem, Problem::not_found);
}

}  // namespace
}  // namespace vfmgr

// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker_process.hpp"

#include <fmt/format.h>

#include "host_tree.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::HostTree;
using test::pci;

struct Hanging : HostTree {
    fs::path const proc = roots().proc;
    void open(int pid, int fd, fs::path const& file, std::string const& flags) const {
        give_descriptor(pid, fd, file);
        write(proc / std::to_string(pid) / "fdinfo" / std::to_string(fd),
              "pos:\t0\nflags:\t" + flags + "\nmnt_id:\t24\n");
    }
    void sleeps(int pid, int task, char state, std::string const& symbol) const {
        auto const folder = proc / std::to_string(pid) / "task" / std::to_string(task);
        write(folder / "wchan", symbol);
        write(folder / "stat", fmt::format("{} (a b) D x) {} 1 1", task, state));
    }
};

TEST(NumVfsWriters, AreThoseThatHaveItOpenForWriting) {
    Hanging tree;
    tree.add_pf("0000:01:00.0", 7);
    auto const numvfs = tree.device("0000:01:00.0") / "sriov_numvfs";
    tree.add_process(812, "bash");
    tree.open(812, 1, numvfs, "0100001");
    tree.add_process(900, "node_exporter");
    tree.open(900, 5, numvfs, "0100000");
    tree.add_process(901, "qemu");
    tree.open(901, 5, tree.device("0000:01:00.0") / "config", "0100002");
    EXPECT_EQ(find_numvfs_writers(tree.roots()),
              (std::vector<NumVfsWriter>{{pci("0000:01:00.0"), 812, "bash"}}));
    tree.sleeps(812, 812, 'S', "vfio_unregister_group_dev");
    EXPECT_EQ(describe(tree.roots(), {pci("0000:01:00.0"), 812, "bash"}),
              "bash (pid 812) changes the number of VFs of 0000:01:00.0 and hangs in "
              "vfio_unregister_group_dev");
}

TEST(WhereItHangs, IsWhereTheTaskThatNothingWakesSleeps) {
    Hanging tree;
    EXPECT_EQ(where_it_hangs(tree.proc, 7), "");
    tree.sleeps(7, 7, 'R', "0");
    EXPECT_EQ(where_it_hangs(tree.proc, 7), "");
    tree.sleeps(7, 8, 'S', "unix_stream_read_generic");
    EXPECT_EQ(where_it_hangs(tree.proc, 7), " in unix_stream_read_generic");
    tree.sleeps(7, 9, 'D', "msleep");
    tree.sleeps(7, 10, 'S', "futex_wait_queue");
    EXPECT_EQ(where_it_hangs(tree.proc, 7), " in msleep");
}

TEST(HeldRemoval, IsAVfWithoutADriverThatSomebodyHolds) {
    HostTree tree;
    PfState pf;
    pf.info.driver = "igb";
    pf.info.pci = pci("0000:01:00.0");
    pf.vfs.resize(2);
    pf.vfs[1].index = 1;
    EXPECT_EQ(find_held_removal(tree.roots(), pf), std::nullopt) << "unbound, and nobody has them";
    pf.vfs[1].driver = "vfio-pci";
    pf.vfs[1].holders = {{812, "qemu"}};
    EXPECT_EQ(find_held_removal(tree.roots(), pf), std::nullopt) << "in a VM";
    pf.vfs[1].driver.reset();
    auto const removal = find_held_removal(tree.roots(), pf);
    ASSERT_TRUE(removal);
    EXPECT_EQ(describe(pf.info.pci, *removal),
              "the removal of VF 1 of 0000:01:00.0 hangs: qemu (pid 812) holds it open");
}

// The PF's driver goes first, then the links between VF and PF, and only then does the VF's driver
// check who holds it.
TEST(HeldRemoval, IsAlsoOfAVfWhoseLinksAreGone) {
    HostTree tree;
    tree.add_pf("0000:02:00.0", 7);
    tree.write(tree.device("0000:02:00.0") / "sriov_offset", "128\n");
    tree.write(tree.device("0000:02:00.0") / "sriov_stride", "2\n");
    tree.add_vf("0000:02:00.0", 1, "0000:02:10.2");
    tree.add_device("0000:02:10.0");
    tree.put_in_group("0000:02:10.0", 5);
    tree.make_group_node(5);
    tree.add_process(812, "qemu");
    PfState pf;
    pf.info.pci = pci("0000:02:00.0");
    pf.info.total_vfs = 7;
    pf.vfs.resize(1);
    pf.vfs[0].index = 1;
    EXPECT_EQ(find_held_removal(tree.roots(), pf), std::nullopt) << "nobody has it";
    tree.give_descriptor(812, 9, "/dev/null");
    EXPECT_EQ(find_held_removal(tree.roots(), pf), (HeldRemoval{0, {812, "qemu"}}));
    tree.bind("0000:02:10.0", "vfio-pci");
    EXPECT_EQ(find_held_removal(tree.roots(), pf), std::nullopt) << "it is no VF in removal";
}

}  // namespace
}  // namespace vfmgr

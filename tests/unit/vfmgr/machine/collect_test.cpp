// SPDX-License-Identifier: Apache-2.0
// Tests the collector on trees that tests make: what is there, what is absent, what is forbidden.
#include "vfmgr/machine/collect.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/files.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace std::string_literals;

class Tree {
  public:
    void write(std::string const& path, std::string const& text) {
        fs::create_directories((folder_.file(path)).substr(0, folder_.file(path).rfind('/')));
        std::ofstream(folder_.file(path)) << text;
    }
    void link(std::string const& path, std::string const& target) {
        fs::create_directories(fs::path(folder_.file(path)).parent_path());
        fs::create_symlink(target, folder_.file(path));
    }
    [[nodiscard]] std::string root() const { return folder_.path(); }
    [[nodiscard]] Facts facts() const { return collect({CheckedMachine::host, root()}); }

  private:
    test::TemporaryFolder folder_;
};

TEST(Collect, ReadsByPatternAndKnowsWhatIsAbsent) {
    Tree tree;
    tree.write("sys/class/net/ens1/mtu", "9000\n");
    tree.write("sys/class/net/ens1/address", "52:54:00:de:00:01\n");
    tree.link("sys/class/net/ens1/device", "../../../0000:3b:00.0");
    auto const facts = tree.facts();
    EXPECT_EQ(facts.text("/sys/class/net/ens1/mtu"), "9000");
    EXPECT_EQ(facts.target("/sys/class/net/ens1/device"), "../../../0000:3b:00.0");
    ASSERT_TRUE(facts.names("/sys/class/net"));
    EXPECT_EQ(facts.names("/sys/class/net")->front(), "ens1");
    auto const absent = facts.text("/sys/class/net/ens1/speed");
    ASSERT_FALSE(absent);
    EXPECT_TRUE(absent.error().absent());
    // A copy of files has no log, no netlink and no commands: they were not read.
    EXPECT_EQ(facts.text("/dev/kmsg").error(), (Unknown{"/dev/kmsg", 0}));
    EXPECT_TRUE(facts.commands.empty() && facts.netlink.empty());
}

TEST(Collect, AFileWhereAPatternWantsAFolderIsNothing) {
    Tree tree;
    tree.write("usr/lib/libnvidia-ml.so", "");
    tree.link("usr/lib/x86_64-linux-gnu/libvirt.so.0", "libvirt.so.0.9000.0");
    auto const facts = tree.facts();
    EXPECT_EQ(facts.target("/usr/lib/x86_64-linux-gnu/libvirt.so.0"), "libvirt.so.0.9000.0");
    EXPECT_FALSE(facts.links.contains("/usr/lib/libnvidia-ml.so/libvirt.so.0"));
}

TEST(Collect, KeepsOnlyTheLinesThatAreWanted) {
    Tree tree;
    tree.write("proc/interrupts", " 1: 5 IO-APIC i8042\n 24: 7 IR-PCI-MSI ens1\n");
    tree.write("etc/NetworkManager/system-connections/lan.nmconnection",
               "[connection]\nid=lan\n[wifi-security]\npsk=hunter2\n[sriov]\ntotal-vfs=4\n");
    auto const facts = tree.facts();
    EXPECT_EQ(facts.text("/proc/interrupts"), " 24: 7 IR-PCI-MSI ens1");
    EXPECT_EQ(facts.text("/etc/NetworkManager/system-connections/lan.nmconnection"),
              "\nid=lan\n\n\n[sriov]\ntotal-vfs=4")
        << "which stands in line 6 there, too";
}

TEST(Collect, ReadsForOwnersTheirFilesAlone) {
    Tree tree;
    tree.write("sys/class/net/ens1/mtu", "9000\n");
    tree.write("proc/cmdline", "igb.max_vfs=2\n");
    tree.write("etc/systemd/network/a.link",
               "[Match]\nOriginalName=ens1\n[Link]\n"
               "SR-IOVVirtualFunctions=4\n");
    tree.write("etc/systemd/system/other.service", "ExecStart=/opt/sriov-setup\n");
    tree.link("etc/systemd/system/multi-user.target.wants/other.service", "../other.service");
    auto const facts = collect_owners(tree.root());
    EXPECT_EQ(facts.text("/sys/class/net/ens1/mtu").error().error, 0) << "nobody looked";
    auto const machine = read_machine(facts);
    EXPECT_EQ(owners_of(machine, {{"ens1"}, {}, {"mlx5_core"}, {}, {}}),
              (std::vector<std::string>{"/etc/systemd/network/a.link:4 makes 4 VFs of it",
                                        "/etc/systemd/system/other.service:1 runs "
                                        "/opt/sriov-setup"}));
    EXPECT_EQ(owners_of(machine, {{"ens2"}, {}, {"igb"}, {}, {}}).size(), 2U);
}

// A drift is reported with all who may have caused it.
TEST(Collect, NamesOwnersWhoseServiceCouldNotBeAskedFor) {
    Tree tree;
    tree.write("etc/NetworkManager/system-connections/s.nmconnection",
               "[connection]\nid=storage\ninterface-name=ens1\n[sriov]\ntotal-vfs=4\n");
    tree.write("etc/systemd/network/b.network",
               "[Match]\nName=ens1\n[SR-IOV]\nVirtualFunction=0\n");
    auto const facts = collect_owners(tree.root());
    EXPECT_EQ(owners_of(read_machine(facts), {{"ens1"}, {}, {}, {}, {}}).size(), 2U);
}

// "vfs.d" belongs to no file, so that systemd reads nothing in it.
TEST(Collect, ReadsFoldersThatBelongToNoFileOfSystemd) {
    Tree tree;
    tree.write("etc/systemd/network/vfs.d/a.conf", "[Match]\nName=ens1\n[SR-IOV]\n");
    auto const facts = collect_owners(tree.root());
    EXPECT_EQ(owners_of(read_machine(facts), {{"ens1"}, {}, {}, {}, {}}).size(), 1U);
}

TEST(Collect, KeepsEachLineOnceAndInItsOrder) {
    Tree tree;
    tree.write("proc/sys/kernel/osrelease", "6.1.0\n");
    tree.write("lib/modules/6.1.0/modules.dep",
               "kernel/ib_core.ko: kernel/udp_tunnel.ko\n"
               "kernel/zram.ko:\n"
               "kernel/mlx5_ib.ko: kernel/ib_uverbs.ko kernel/ib_core.ko kernel/mlx5_core.ko\n"
               "kernel/virtio.ko:\n"
               "kernel/vfio-pci.ko:");
    EXPECT_EQ(tree.facts().text("/lib/modules/6.1.0/modules.dep"),
              "kernel/ib_core.ko: kernel/udp_tunnel.ko\n"
              "kernel/mlx5_ib.ko: kernel/ib_uverbs.ko kernel/ib_core.ko kernel/mlx5_core.ko\n"
              "kernel/vfio-pci.ko:");
}

TEST(Collect, ReadsFilesOfOneNameInManyFolders) {
    Tree tree;
    std::string const ports = "sys/class/infiniband/";
    for (auto const* const device : {"mlx5_0", "mlx5_1"})
        for (auto const* const number : {"0", "1"})
            tree.write(ports + device + "/ports/1/gids/" + number,
                       "fe80::"s + device + number + "\n");
    auto const facts = tree.facts();
    for (auto const* const device : {"mlx5_0", "mlx5_1"})
        for (auto const* const number : {"0", "1"})
            EXPECT_EQ(facts.text("/" + ports + device + "/ports/1/gids/" + number),
                      "fe80::"s + device + number);
}

TEST(Collect, KeepsNothingOfUnitsButWhatMakesVfsAndRdmaLinks) {
    Tree tree;
    tree.write("etc/systemd/system/vfs.service",
               "[Unit]\nDescription=VFs, sold by hunter2\n[Service]\n"
               "Environment=TOKEN=hunter2 FOR=sriov\n Environment=sriov_key=hunter2\n"
               "# sriov hunter2\nSetCredential=sriov:hunter2\nEnvironmentFile=/etc/sriov.env\n"
               "ExecStartPre=/usr/bin/login --user root hunter2\n"
               "ExecStart=/bin/sh -c 'echo 4 > /sys/class/net/ens1/device/sriov_numvfs'\n"
               "ExecStart=/sbin/rdma link add rxe0 type rxe netdev ens1\n"
               "ExecStartPost=/opt/make-sriov-vfs\n");
    tree.write("etc/systemd/system/shop.service",
               "[Service]\nEnvironment=DATABASE=postgres://shop:hunter2@db\nExecStart=/opt/shop\n");
    auto const facts = tree.facts();
    EXPECT_EQ(facts.text("/etc/systemd/system/vfs.service"),
              std::string(9, '\n') +
                  "ExecStart=/bin/sh -c 'echo 4 > /sys/class/net/ens1/device/sriov_numvfs'\n"
                  "ExecStart=/sbin/rdma link add rxe0 type rxe netdev ens1\n"
                  "ExecStartPost=/opt/make-sriov-vfs");
    EXPECT_EQ(facts.text("/etc/systemd/system/shop.service"), "");
    for (auto const& [path, fact] : facts.files)
        EXPECT_EQ(fact.bytes.find("hunter2"), fact.bytes.npos) << path;
}

TEST(Collect, LeavesOutGidsThatAreNone) {
    Tree tree;
    auto const gids = std::string("sys/class/infiniband/mlx5_0/ports/1/gids/");
    tree.write(gids + "0", "fe80:0000:0000:0000:5054:00ff:fede:0001\n");
    tree.write(gids + "1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    auto const types = std::string("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/");
    for (auto const* const index : {"0", "1"}) tree.write(types + index, "RoCE v2\n");
    auto const facts = tree.facts();
    EXPECT_EQ(facts.text("/" + types + "0"), "RoCE v2");
    EXPECT_FALSE(facts.text("/" + types + "1")) << "what none is has a type";
    EXPECT_TRUE(facts.text("/" + gids + "0"));
    EXPECT_FALSE(facts.text("/" + gids + "1"));
}

TEST(Collect, CutsWhatIsLongerThanAllowed) {
    Tree tree;
    tree.write("proc/cmdline", std::string(100'000, 'x'));
    EXPECT_EQ(tree.facts().text("/proc/cmdline")->size(), 4096U);
}

TEST(Collect, ReadsConfigurationSpacesOfNicsAndBridgesOnly) {
    Tree tree;
    std::string const devices = "sys/bus/pci/devices/";
    for (auto const& [device, its_class] :
         {std::pair("0000:01:00.0", "0x020000\n"), std::pair("0000:00:1f.2", "0x010601\n")}) {
        tree.write(devices + device + "/class", its_class);
        tree.write(devices + device + "/config", std::string("\x86\x80\0\0", 4));
    }
    auto const facts = tree.facts();
    EXPECT_TRUE(facts.text("/" + devices + "0000:01:00.0/config"));
    EXPECT_FALSE(facts.text("/" + devices + "0000:00:1f.2/config"));
}

TEST(Holders, AreNamedByTheirVm) {
    Tree tree;
    tree.link("proc/42/fd/7", "/dev/vfio/12");
    tree.link("proc/42/fd/8", "/dev/null");
    tree.write("proc/42/comm", "qemu-system-x86\n");
    tree.write("proc/42/cmdline", "qemu\0-name\0guest=db1,debug-threads=on\0-vnc\0password=x\0"s);
    tree.link("proc/43/fd/1", "/dev/null");
    auto const machine_facts = tree.facts();
    auto const machine = read_machine(machine_facts);
    ASSERT_TRUE(machine.vfio_holders());
    ASSERT_EQ(machine.vfio_holders()->size(), 1U);
    EXPECT_EQ(machine.vfio_holders()->front().node, "/dev/vfio/12");
    EXPECT_EQ(machine.vfio_holders()->front().vm, "db1");
    EXPECT_EQ(machine.vfio_holders()->front().process, "qemu-system-x86");
    EXPECT_EQ(machine_facts.text("/proc/42/cmdline"), "guest=db1,debug-threads=on");
}

TEST(Commands, SayWhatTheySaidAndHowTheyEnded) {
    auto const deadline = std::chrono::steady_clock::now() + 20s;
    auto const fact = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"}, deadline);
    EXPECT_EQ(fact, (CommandFact{"out\n", "err\n", 3, 0}));
    EXPECT_EQ(run_command({"no-such-program-of-ours"}, deadline).error, ENOENT);
    EXPECT_EQ(run_command({"sh", "-c", "kill -9 $$"}, deadline).exit_status, 128 + 9);
    auto const language = run_command({"sh", "-c", "echo $LC_ALL"}, deadline);
    EXPECT_EQ(language.out, "C\n");
}

TEST(Commands, AreEndedAtTheirDeadline) {
    // Its child keeps the pipe open, as the child of a hanging program would.
    auto const fact = run_command({"sh", "-c", "echo said; sleep 600 & wait"},
                                  std::chrono::steady_clock::now() + 1s);
    EXPECT_EQ(fact.error, ETIMEDOUT);
    EXPECT_EQ(fact.out, "said\n");
}

// A process that hangs in the kernel takes no signal. Nor does a program that has become another
// user's, which is easier to set up: here root's, run by the user nobody.
TEST(Commands, ThatCantBeKilledAreLeftBehind) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a program that nobody can't kill";
    test::TemporaryFolder const folder;
    auto const program = folder.path() / "sudo";
    fs::copy_file("/usr/bin/setpriv", program);
    ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
    ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
    auto const tester = ::fork();
    if (tester == 0) {
        if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)
            ::_exit(2);
        auto const began = std::chrono::steady_clock::now();
        auto const fact =
            run_command({program.string(), "--reuid=0", "sh", "-c", "echo $PPID $$; exec sleep 30"},
                        began + 1s);
        auto const took = std::chrono::steady_clock::now() - began;
        if (fact.out.empty() || fact.error != ETIMEDOUT) ::_exit(3);
        ::_exit(took < 20s ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(tester, &status, 0), tester);
    if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "programs do not become root's here";
    EXPECT_EQ(status, 0);
}

TEST(Commands, MayNotFillOurMemory) {
    auto const fact =
        run_command({"head", "-c", "5000000", "/dev/zero"}, std::chrono::steady_clock::now() + 60s);
    EXPECT_EQ(fact.exit_status, 0);
    EXPECT_EQ(fact.out.size(), std::size_t{1} << 20U);
}

TEST(Units, AreReadFromSystemctl) {
    auto const units = parse_units(
        "Id=libvirtd.socket\nLoadState=masked\nActiveState=inactive\nUnitFileState=masked\n\n"
        "Id=mst.service\nLoadState=not-found\nActiveState=inactive\n");
    ASSERT_EQ(units.size(), 2U);
    EXPECT_EQ(units.at("libvirtd.socket").load, "masked");
    EXPECT_EQ(units.at("mst.service").file, "");
}

}  // namespace
}  // namespace vfmgr::checks

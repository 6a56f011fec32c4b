// SPDX-License-Identifier: Apache-2.0
// Real machines' file trees, CPUs, IOMMUs, GPUs, RDMA stacks, other owners of VFs, libvirt.
#include "tests/unit/recordings/recordings.hpp"

#include <sstream>

#include "tests/unit/vfmgr/machine/configuration_space.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/hypervisor/domain_xml.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks::recordings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PciDevice const* first(Machine const& machine, std::string_view driver) {
    if (!machine.pci()) return nullptr;
    auto const found = std::ranges::find_if(
        *machine.pci(), [&](auto const& one) { return one.driver() == driver; });
    return found == machine.pci()->end() ? nullptr : &*found;
}

class SysfsRecordings : public Recordings {};

TEST_F(SysfsRecordings, XeonWithConnectX3) {
    auto const facts =
        collected("04-sysfs/hwloc-sandybridge-mlx4-137pci.tar.gz", "32em64t-2n8c+1mic");
    auto const machine = read_machine(facts);
    ASSERT_TRUE(machine.pci() && machine.rdma_devices());
    EXPECT_EQ(machine.pci()->size(), 137U);
    auto const* const nic = first(machine, "mlx4_core");
    ASSERT_NE(nic, nullptr);
    EXPECT_EQ(to_string(nic->address), "0000:82:00.0");
    EXPECT_EQ(nic->numa_node(), 1);
    EXPECT_THAT(nic->rdma_devices(), ElementsAre("mlx4_0"));
    auto const device =
        std::ranges::find(*machine.rdma_devices(), "mlx4_0", &MachineRdmaDevice::name);
    ASSERT_NE(device, machine.rdma_devices()->end());
    EXPECT_EQ(device->pci(), nic->address);
    EXPECT_FALSE(device->ports.empty());
    // A coprocessor's RDMA device: not a NIC, and not a fault.
    EXPECT_THAT(said(facts, "stack.driver"), Not(HasSubstr("scif")));
    EXPECT_TRUE(machine.cpu() && machine.cpu()->vendor == CpuVendor::intel);
}

TEST_F(SysfsRecordings, TwoPfsWithoutVfs) {
    auto const facts =
        collected("04-sysfs/hwloc-cascadelake-two-pfs-totalvfs64.tar.gz", "32intel64-2p8co2t+8ve");
    auto const machine = read_machine(facts);
    ASSERT_TRUE(machine.pci() && machine.parameters());
    int pfs = 0;
    for (auto const& device : *machine.pci()) {
        if (!device.total_vfs()) continue;
        ++pfs;
        EXPECT_EQ(device.total_vfs(), 64);
        EXPECT_THAT(device.vfs(), IsEmpty());
        EXPECT_GE(device.above().size(), 2U);  // behind a switch
        EXPECT_THAT(said(facts, "sriov.capable"),
                    HasSubstr("ok       sriov.capable " + to_string(device.address)));
    }
    EXPECT_EQ(pfs, 2);
    EXPECT_NE(find_parameter(*machine.parameters(), "crashkernel"), nullptr);
}

TEST_F(SysfsRecordings, GpuMemoryIsANodeOfNoCpu) {
    auto const facts =
        collected("04-sysfs/hwloc-power9-nvidia-gpu-numa.tar.gz", "nvidiagpunumanodes");
    EXPECT_THAT(
        said(facts, "memory.numa"),
        HasSubstr(
            "ok       memory.numa: NUMA nodes without CPUs, such as a GPU's memory: 250, 251, "
            "252, 253, 254, 255"));
}

TEST_F(SysfsRecordings, SnapshotsWithOrWithoutGpus) {
    auto const gpu = collected("04-sysfs/ghw-nvidia-accelerator.tar.gz", "");
    auto const machine = read_machine(gpu);
    ASSERT_TRUE(machine.pci());
    EXPECT_GT(std::ranges::count_if(*machine.pci(), is_nvidia_gpu), 0);
    EXPECT_THAT(said(gpu, "gpu.driver"), HasSubstr("NVIDIA's driver is not installed"));
    auto const plain = collected("04-sysfs/ghw-amd64-8581.tar.gz", "");
    EXPECT_THAT(said(plain, "gpu.driver"), HasSubstr("there is no NVIDIA GPU"));
    EXPECT_TRUE(read_machine(plain).cpu());
}

TEST_F(SysfsRecordings, H100HostsNamesHaveGaps) {
    auto const facts = collected("04-sysfs/h100-class-infiniband.tar.gz", "");
    auto const machine = read_machine(facts);
    ASSERT_TRUE(machine.rdma_devices());
    ASSERT_EQ(machine.rdma_devices()->size(), 9U);
    for (auto const& device : *machine.rdma_devices()) {
        ASSERT_EQ(device.ports.size(), 1U) << device.name;
        bool const bond = device.name == "mlx5_bond_0";
        EXPECT_EQ(device.firmware(), bond ? "32.38.3056" : "28.41.1000") << device.name;
        EXPECT_EQ(device.hca_type(), bond ? "MT41692" : "MT4129") << device.name;
        EXPECT_EQ(device.ports[0].link_layer(), bond ? "Ethernet" : "InfiniBand") << device.name;
        EXPECT_EQ(device.ports[0].state(), "ACTIVE") << device.name;
        EXPECT_EQ(device.board_id() == "MT_0000000838", !bond) << device.board_id();
    }
    EXPECT_THAT(said(facts, "port.speed"), Not(HasSubstr("warning ")));
    EXPECT_THAT(said(facts, "port.state"), Not(HasSubstr("failed  ")));
}

// Path, tab, content or "-> " and a link's target.
Facts facts_of_tsv(std::string const& name) {
    auto facts = machine_with({});
    constexpr std::string_view root = "fixtures", bus = "/sys/bus/pci/devices/";
    std::map<std::string, std::string> devices;  // by their place in the tree
    std::set<std::string> functions, rdma, netdevs;
    std::istringstream lines(content(name));
    for (std::string line; std::getline(lines, line);) {
        auto const tab = line.find('\t');
        if (tab == line.npos || !line.starts_with(root)) continue;
        auto path = line.substr(root.size(), tab - root.size());
        auto text = std::regex_replace(line.substr(tab + 1), std::regex(R"(\\n)"), "\n");
        if (auto const at = path.rfind('/');
            PciAddress::parse(path.substr(at + 1)) && path.starts_with(bus))
            functions.insert(path.substr(at + 1));
        for (auto const& function : functions)
            if (auto const at = path.find("/" + function + "/");
                path.starts_with("/sys/devices") && at != path.npos)
                path = std::string(bus) + path.substr(at + 1);
        constexpr std::string_view of_rdma = "/sys/class/infiniband/";
        if (path.starts_with(of_rdma))
            rdma.insert(
                path.substr(of_rdma.size(), path.find('/', of_rdma.size()) - of_rdma.size()));
        if (text.starts_with("-> "))
            facts.links[path] = {text.substr(3), 0};
        else
            facts.files[path] = {text, 0};
    }
    facts.folders["/sys/bus/pci/devices"].names = {functions.begin(), functions.end()};
    facts.folders["/sys/class/infiniband"].names = {rdma.begin(), rdma.end()};
    return facts;
}

TEST_F(SysfsRecordings, IntelPfAndThreeKindsOfRdmaDevices) {
    auto const facts = facts_of_tsv("04-sysfs/procfs-infiniband-and-pci.tsv");
    auto const machine = read_machine(facts);
    auto const* const ice = first(machine, "ice");
    ASSERT_NE(ice, nullptr);
    EXPECT_EQ(to_string(ice->address), "0000:a2:00.0");
    EXPECT_EQ(ice->total_vfs(), 128);
    EXPECT_EQ(ice->width_max(), 8);
    EXPECT_EQ(ice->speed_gts(), 16.0);
    ASSERT_TRUE(machine.rdma_devices());
    ASSERT_EQ(machine.rdma_devices()->size(), 3U);
    EXPECT_EQ(machine.rdma_devices()->at(0).name, "hfi1_0");
    EXPECT_EQ(machine.rdma_devices()->at(0).ports[0].state(), "ACTIVE");
    EXPECT_EQ(machine.rdma_devices()->at(1).ports.size(), 2U);
    EXPECT_EQ(machine.rdma_devices()->at(1).ports[1].link_layer(), "InfiniBand");
    EXPECT_TRUE(machine.rdma_devices()->at(2).node_guid());
    EXPECT_THAT(said(facts, "sriov.capable"), HasSubstr("ok       sriov.capable 0000:a2:00.0"));
    // A value that is not a number of interrupts has no use.
    EXPECT_THAT(describe(diagnose(facts, all_rules()), {.all = true}),
                Not(HasSubstr("4294967033")));
}

class HostRecordings : public Recordings {
  protected:
    static std::string text(std::string const& name) {
        return content("08-iommu-cpu-boot/" + name);
    }
    // Returns the line of a shell's session that is the kernel's command line.
    static std::string command_line(std::string const& session) {
        auto const at = session.find("BOOT_IMAGE=");
        return session.substr(at, session.find('\n', at) - at);
    }
};

TEST_F(HostRecordings, CpusOfFourKinds) {
    auto const epyc = parse_cpu(text("cpuinfo-epyc-7451.txt"));
    EXPECT_TRUE(epyc.vendor == CpuVendor::amd && epyc.svm && !epyc.hypervisor);
    // A guest that does not report being one, with virtualization of its own.
    auto const guest = parse_cpu(text("cpuinfo-vmware-guest.txt"));
    EXPECT_TRUE(guest.vendor == CpuVendor::amd && guest.svm && !guest.hypervisor);
    EXPECT_EQ(parse_cpu(text("cpuinfo-ppc64el.txt")).vendor, CpuVendor::other);
    EXPECT_EQ(parse_cpu(text("cpuinfo-amd64.txt")).vendor, CpuVendor::intel);
}

TEST_F(HostRecordings, DmarLinesAloneAreNoIommu) {
    auto facts = machine_with({}, text("intel-dmar-no-iommu-enabled-line.txt"));
    facts.files["/proc/cmdline"] = {"BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet\n", 0};
    facts.files["/proc/cpuinfo"] = {"vendor_id\t: GenuineIntel\nflags\t\t: vmx\n", 0};
    facts.folders["/sys/firmware/acpi/tables"] = {{"DMAR"}, 0};
    auto const told = said(facts, "iommu.enabled");
    EXPECT_THAT(told, HasSubstr("failed   iommu.enabled"));
    EXPECT_THAT(told, HasSubstr("intel_iommu=on"));
}

TEST_F(HostRecordings, OverriddenAcsIsWarnedOf) {
    EXPECT_THAT(said(machine_with({}, text("haswell-acs-override-dmar.txt")), "iommu.acs_override"),
                Not(HasSubstr("ok  ")));
    EXPECT_THAT(said(machine_with({}, text("fuji-dmar-on-lsmod-vfio.txt")), "iommu.acs_override"),
                Not(HasSubstr("failed  ")));
}

TEST_F(HostRecordings, GroupsAreTheIommu) {
    for (auto const* const name : {"suprox-cmdline-and-groups.txt", "nas-cmdline-and-groups.txt"}) {
        auto const session = text(name);
        auto functions = functions_in(session);
        ASSERT_GT(functions.size(), 9U) << name;
        auto facts = machine_with(functions);
        facts.files["/proc/cmdline"] = {command_line(session) + "\n", 0};
        EXPECT_THAT(said(facts, "iommu.enabled"), HasSubstr("ok       iommu.enabled")) << name;
        auto const machine = read_machine(facts);
        ASSERT_TRUE(machine.parameters());
        EXPECT_EQ(find_parameter(*machine.parameters(), "intel_iommu")->value, "on") << name;
        EXPECT_EQ(find_parameter(*machine.parameters(), "iommu")->value, "pt") << name;
    }
}

// A bridge and the VGA of a BMC share a group, which affects no NIC.
TEST_F(HostRecordings, GroupsOfOthersAreNoFault) {
    auto functions = functions_in(text("suprox-cmdline-and-groups.txt"));
    for (auto& one : functions)
        if (one.device == 0x1521) one.total_vfs = 7;
    auto const told = said(machine_with(functions), "iommu.groups");
    EXPECT_THAT(told, Not(HasSubstr("0000:06:00.0")));
}

class GpuRecordings : public Recordings {};

TEST_F(GpuRecordings, A100VmOfManyDomains) {
    auto facts = machine_with(functions_in(content("07-gpu-topology/lspci-nn-a100.txt")));
    facts.machine = CheckedMachine::guest;
    auto const machine = read_machine(facts);
    ASSERT_TRUE(machine.pci());
    EXPECT_EQ(std::ranges::count_if(*machine.pci(), is_nvidia_gpu), 8);
    EXPECT_EQ(std::ranges::count_if(
                  *machine.pci(), [](auto const& one) { return one.vendor() == vendor_mellanox; }),
              9);
    EXPECT_NE(find_pci(machine, {0xc941, 0, 2, 0}), nullptr);
    EXPECT_THAT(said(facts, "stack.driver"), HasSubstr("0101:00:00.0"));
}

// Its command line has amd_iommu=off: good for GPUDirect on the host, but nothing can be attached.
TEST_F(GpuRecordings, GpudirectHostWithoutIommu) {
    auto const text = content("07-gpu-topology/asus-epyc-nvidia-smi-topo-acs-grub.txt");
    constexpr std::string_view mark = "GRUB_CMDLINE_LINUX_DEFAULT=\"";
    auto const at = text.find(mark) + mark.size();
    auto facts = machine_with({});
    facts.files["/proc/cmdline"] = {text.substr(at, text.find('"', at) - at) + "\n", 0};
    facts.files["/proc/cpuinfo"] = {"vendor_id\t: AuthenticAMD\nflags\t\t: svm\n", 0};
    EXPECT_THAT(said(facts, "iommu.enabled"),
                HasSubstr("the IOMMU is switched off by amd_iommu=off"));
}

// A port with these ACS bits on, above a PF and its VF.
Facts below_port(std::uint16_t acs_on) {
    auto facts = machine_with(
        {{.address = "0000:00:01.0", .class_code = 0x060400},
         {.address = "0000:01:00.0", .total_vfs = 8, .driver = "mlx5_core", .group = "1"},
         {.address = "0000:01:00.1", .device = 0x101e, .group = "2", .pf = "0000:01:00.0"}});
    ConfigurationSpace space(4096);
    space.set(0x00, {0x22, 0x10, 0xab, 0x14, 6, 4, 0x10, 0, 0, 0, 4, 6, 0, 0, 1});
    space.set(0x34, {0x40});
    space.set(0x40, {0x10, 0, 0x62, 0});                    // PCI Express, a downstream port
    space.set(0x100, {0x0d, 0, 1, 0, 0x7f, 0, acs_on, 0});  // ACS with all capabilities
    facts.files["/sys/bus/pci/devices/0000:00:01.0/config"] = {space.bytes(), 0};
    for (auto const* const function : {"0000:01:00.0", "0000:01:00.1"})
        facts.links[std::string("/sys/bus/pci/devices/") + function] = {
            std::string("../../../devices/pci0000:00/0000:00:01.0/") + function, 0};
    return facts;
}

// "1x111x1": direct translated, egress, upstream, completions, requests, translation, source.
TEST_F(GpuRecordings, PortsAreWantedAsTheReferenceWantsThem) {
    std::istringstream rows(content("07-gpu-topology/rdma-topo-acs-rules.tsv"));
    static std::regex const bits("[01x]{7}");
    int with_vms = 0, without = 0;
    for (std::string row; std::getline(rows, row);)
        for (std::sregex_iterator at(row.begin(), row.end(), bits), end; at != end; ++at) {
            std::uint16_t on = 0;
            for (char const bit : at->str())
                on = static_cast<std::uint16_t>(unsigned{on} << 1U | (bit == '1' ? 1U : 0U));
            bool const vm = row.starts_with("VM passthrough");
            bool const bare = row.starts_with("bare metal");
            with_vms += vm;
            without += bare;
            if (!vm && !bare) continue;
            EXPECT_THAT(said(below_port(on), "pci.acs"), HasSubstr(vm ? "1 ok" : "1 failed"))
                << row;
        }
    EXPECT_EQ(with_vms, 3);
    EXPECT_EQ(without, 1);
}

class OwnerRecordings : public Recordings {
  protected:
    static std::vector<SriovOwner> owners(std::string const& path, std::string const& name) {
        return parse_sriov_owners(path, content("09-other-owners/" + name));
    }
};

TEST_F(OwnerRecordings, EachWhoWouldWriteToThePfIsNamed) {
    struct Written {
        char const* path;
        char const* name;
        char const* does;
    };
    for (auto const& one :
         {Written{"/etc/systemd/network/25.link", "systemd-25-sriov.link", "sets VFs up"},
          Written{"/etc/systemd/network/25.network", "systemd-25-sriov.network", "sets VFs up"},
          Written{"/etc/netplan/a.yaml", "netplan-sriov.yaml", "sets VFs up"},
          Written{"/etc/netplan/a.yaml", "netplan-fixture-sriov.yaml", "makes 2 VFs"},
          Written{"/etc/sysconfig/network-scripts/ifcfg-a", "networkmanager-ifcfg-test-sriov",
                  "makes 16 VFs"},
          Written{"/etc/modprobe.d/a.conf", "mlx4-modprobe-num_vfs.txt",
                  "makes VFs, num_vfs=2,2,0"},
          Written{"/etc/systemd/system/mlx5-sriov-vfs@.service",
                  "proxmox-mlx5-mlx5-sriov-vfs_AT_.service",
                  "runs /usr/sbin/mlx5-sriov-create-vfs"},
          Written{"/etc/systemd/system/mlx5-sriov-mappings@.service",
                  "proxmox-mlx5-mlx5-sriov-mappings_AT_.service",
                  "runs /usr/sbin/mlx5-sriov-sync-mappings"}}) {
        auto const found = owners(one.path, one.name);
        ASSERT_EQ(found.size(), 1U) << one.name;
        EXPECT_EQ(found[0].does, one.does) << one.name;
    }
    EXPECT_THAT(owners("/etc/netplan/a.yaml", "netplan-sriov.yaml")[0].of.netdevs,
                ElementsAre("eno1"));
    EXPECT_THAT(owners("/etc/modprobe.d/a.conf", "mlx4-modprobe-num_vfs.txt")[0].of.drivers,
                ElementsAre("mlx4_core"));
}

// nmstate keeps no file that is read at boot: it writes NetworkManager's profiles.
TEST_F(OwnerRecordings, FilesThatSetNoVfsUpAreNobodys) {
    EXPECT_THAT(owners("/etc/systemd/network/25.network", "systemd-25-sriov-udev.network"),
                IsEmpty());
    EXPECT_THAT(
        owners("/etc/sysconfig/network-scripts/ifcfg-ib0", "networkmanager-ifcfg-test-infiniband0"),
        IsEmpty());
    EXPECT_THAT(owners("/etc/rdma/rdma.conf", "rhel-rdma.conf"), IsEmpty());
    EXPECT_THAT(owners("/etc/nmstate/eth1.yml", "nmstate-eth1_with_sriov.yml"), IsEmpty());
}

class StackRecordings : public Recordings {};

TEST_F(StackRecordings, OfedIsToldFromTheKernelsOwnDriver) {
    std::istringstream rows(content("10-ofed-mst/ethtool-i-driver-version-forms.tsv"));
    int ofed = 0, inbox = 0;
    for (std::string row; std::getline(rows, row);) {
        std::istringstream cells(row);
        std::string driver, version, meaning;
        std::getline(std::getline(std::getline(cells, driver, '\t'), version, '\t'), meaning, '\t');
        if (driver == "driver") continue;
        bool const is_ofed = meaning.find("OFED") != meaning.npos;
        EXPECT_EQ(parse_ofed_version(version).has_value(), is_ofed) << row;
        ++(is_ofed ? ofed : inbox);
    }
    EXPECT_EQ(ofed, 4);
    EXPECT_EQ(inbox, 3);
    // Follows the shell's prompt.
    auto const told = [](std::string const& name) {
        auto const session = content("10-ofed-mst/" + name);
        return parse_ofed_version(session.substr(session.find("OFED-internal-")));
    };
    EXPECT_EQ(told("ofed_info-s-4.9.txt"), (OfedVersion{4, 9, "4.9-5.1.0"}));
    EXPECT_EQ(told("mlnx_ofed-5.0-install-and-info.txt"), (OfedVersion{5, 0, "5.0-1.0.0.0"}));
}

class LibvirtRecordings : public Recordings {};

TEST_F(LibvirtRecordings, DomainsTellWhichHostDevicesTheyTake) {
    auto const devices = [](std::string const& name) {
        std::vector<std::string> addresses;
        auto const domain =
            parse_domain_xml(content("06-libvirt/qemuxml2argvdata/" + name + ".xml"));
        if (!domain) return std::vector{domain.error().detail};
        for (auto const& one : domain->hostdevs) addresses.push_back(to_string(one.pci));
        return addresses;
    };
    EXPECT_THAT(devices("hostdev-pci-address"), ElementsAre("0000:06:12.5"));
    EXPECT_THAT(devices("hostdev-vfio"), ElementsAre("0000:06:12.1"));
    EXPECT_THAT(devices("net-hostdev"), ElementsAre("0000:03:07.1"));
    EXPECT_EQ(devices("hostdev-pci-multifunction").size(), 7U);
    for (auto const& name : all_names()) {
        if (!name.starts_with("06-libvirt/qemuxml2argvdata/") || !name.ends_with(".xml")) continue;
        EXPECT_TRUE(parse_domain_xml(content(name))) << name;
    }
}

TEST_F(LibvirtRecordings, NetworksOfVfsArePools) {
    auto const pool = hostdev_pool_name(content("06-libvirt/networkxml2xmlin/hostdev.xml"));
    ASSERT_TRUE(pool) << pool.error().detail;
    EXPECT_EQ(*pool, "hostdev");
    EXPECT_TRUE(hostdev_pool_name(content("06-libvirt/networkxml2xmlin/hostdev-duplicate.xml")));
}

}  // namespace
}  // namespace vfmgr::checks::recordings

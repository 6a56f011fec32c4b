// SPDX-License-Identifier: Apache-2.0
// Every recording, whatever reads it: none is forgotten, and none makes a parser crash.
//
// The table names what reads each of them. "none: …" is the output of a tool that vfmgr does not
// run: it queries the kernel (netlink, sysfs) or libvirt instead, as the tool does, and has no
// parser for the tool's text. The rest is the name of the suite that asserts what is notable in it.
#include "tests/unit/recordings/recordings.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/unit/repository.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/firmware.hpp"
#include "vfmgr/machine/pci_config.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks::recordings {

namespace {

struct Reader {
    char const* pattern;
    char const* by;
};

constexpr Reader readers[] = {
    {"01-firmware/mstflint-messages.tsv", "none: strings of a program, no recording"},
    {"01-firmware/*", "FirmwareRecordings"},
    {"02-ip-link-vf/*", "none: ip link; RTM_GETLINK is asked, netlink_test has mlx4's VLAN 4095"},
    {"03-rdma-devlink-pci/lspci-vvv-x-cx3.txt", "PciRecordings"},
    {"03-rdma-devlink-pci/lspci-vvv-hgx-server.txt.gz", "TopologyRecordings"},
    {"03-rdma-devlink-pci/asus-epyc-lspci-tv-and-vvv.txt", "TopologyRecordings"},
    {"03-rdma-devlink-pci/show_gids-one-port.txt", "AddressRecordings"},
    {"03-rdma-devlink-pci/ibv_devinfo-*", "AddressRecordings"},
    {"03-rdma-devlink-pci/ibstat*",
     "none: ibstat; sysfs is read, cases `port` judge ports that nobody uses"},
    {"03-rdma-devlink-pci/*devlink*", "none: devlink; its netlink family is asked"},
    {"03-rdma-devlink-pci/rdma-*", "none: rdma; RDMA netlink is asked"},
    {"03-rdma-devlink-pci/cx5-roce-lag-one-ibdev.txt",
     "none: ibdev2netdev; rdma_names_test has a LAG of sysfs"},
    {"03-rdma-devlink-pci/stale-roce-gids-after-udev-mac.txt",
     "none: a description of a race, with traces"},
    {"03-rdma-devlink-pci/ethtool*", "none: ethtool; ethtool netlink and sysfs are asked"},
    {"04-sysfs/*.tar.gz", "SysfsRecordings, TopologyRecordings"},
    {"04-sysfs/procfs-infiniband-and-pci.tsv", "SysfsRecordings"},
    {"04-sysfs/udev-export-db-mlx4-40g.txt.gz", "none: udevadm; sysfs is read"},
    {"04-sysfs/ofed-sriov-node-port-policy-session.txt",
     "none: a shell's session; kernel_test writes those files, zeros when read included"},
    {"05-kernel-log/vfio-container-not-permitted.txt",
     "none: QEMU's words to libvirt, handed on as they are"},
    {"05-kernel-log/vfio-group-not-viable.txt",
     "none: QEMU's words to libvirt; iommu.groups says it before"},
    {"05-kernel-log/gpu-host-full-dmesg.txt.gz", "LogRecordings, TopologyRecordings"},
    {"05-kernel-log/*", "LogRecordings"},
    {"06-libvirt/qemuxml2argvdata/*.err", "none: QEMU driver's errors, handed on as they are"},
    {"06-libvirt/qemuxml2argvdata/*.xml", "LibvirtRecordings"},
    {"06-libvirt/networkxml2xmlin/*", "LibvirtRecordings"},
    {"06-libvirt/virpcitestdata/*", "PciRecordings"},
    {"06-libvirt/nodedevschemadata/*", "none: node devices; sysfs is read, not libvirt's view"},
    {"06-libvirt/vdsm/*", "none: node devices; sysfs is read, not libvirt's view"},
    {"06-libvirt/*nodedev*", "none: node devices; sysfs is read, not libvirt's view"},
    {"06-libvirt/virsh-list-error.txt", "none: virsh; libvirt's library tells its errors"},
    {"06-libvirt/libvirtd-log.txt", "none: libvirtd's own log"},
    {"07-gpu-topology/lspci-nn-a100.txt", "GpuRecordings, NcclRecordings"},
    {"07-gpu-topology/asus-epyc-nvidia-smi-topo-acs-grub.txt", "GpuRecordings, TopologyRecordings"},
    {"07-gpu-topology/rdma-topo-acs-rules.tsv", "GpuRecordings"},
    {"07-gpu-topology/lspci-gb200.txt", "none: lspci without numbers or buses; sysfs is read"},
    {"07-gpu-topology/*-topo*.xml", "NcclRecordings"},
    {"07-gpu-topology/nccl-dump-l40s-cx7.xml", "NcclRecordings"},
    {"07-gpu-topology/nvidia-smi-topo-samples.txt", "TopologyRecordings"},
    {"07-gpu-topology/nvidia-smi-q-*", "none: nvidia-smi; sysfs and /proc/driver/nvidia are read"},
    {"07-gpu-topology/linux-x86_64__*", "none: nvidia-smi; sysfs and /proc/driver/nvidia are read"},
    {"08-iommu-cpu-boot/cpuinfo-*", "HostRecordings"},
    {"08-iommu-cpu-boot/*dmar*", "HostRecordings"},
    {"08-iommu-cpu-boot/*-cmdline-and-groups.txt", "HostRecordings"},
    {"08-iommu-cpu-boot/spr-iommu-units-and-groups.txt",
     "none: a script's listing; /sys/kernel/iommu_groups and /sys/class/iommu are read"},
    {"08-iommu-cpu-boot/mokutil-*", "none: mokutil; the EFI variable is read"},
    {"09-other-owners/*", "OwnerRecordings"},
    {"10-ofed-mst/ofed_info-s-4.9.txt", "StackRecordings"},
    {"10-ofed-mst/mlnx_ofed-5.0-install-and-info.txt", "StackRecordings"},
    {"10-ofed-mst/ethtool-i-driver-version-forms.tsv", "StackRecordings"},
    {"10-ofed-mst/dkms-status-mlnx-ofed-5.4.txt", "none: dkms; its tree in /var/lib/dkms is read"},
    {"10-ofed-mst/openibd-status.txt", "none: openibd; systemd and /proc/modules are asked"},
    {"10-ofed-mst/mst-*", "none: mst, flint; vfmgr needs mstconfig only"},
};

// As a shell's pattern, but "*" matches "/" as well.
bool fits(std::string_view pattern, std::string_view name) {
    auto const star = pattern.find('*');
    if (star == pattern.npos) return pattern == name;
    if (!name.starts_with(pattern.substr(0, star))) return false;
    pattern.remove_prefix(star + 1);
    for (name.remove_prefix(star);; name.remove_prefix(1)) {
        if (fits(pattern, name)) return true;
        if (name.empty()) return false;
    }
}

std::string said_by(std::vector<std::string> words) {
    auto const fact =
        run_command(words, std::chrono::steady_clock::now() + std::chrono::seconds(60));
    if (fact.exit_status != 0) throw std::runtime_error(words.front() + ": " + fact.err);
    return fact.out;
}

void add(Facts& facts, Function const& one) {
    auto const device = "/sys/bus/pci/devices/" + one.address;
    facts.folders["/sys/bus/pci/devices"].names.push_back(one.address);
    auto const write = [&](char const* name, std::string text) {
        facts.files[device + "/" + name] = {std::move(text) + "\n", 0};
    };
    write("vendor", fmt::format("0x{:04x}", one.vendor));
    write("device", fmt::format("0x{:04x}", one.device));
    if (one.subsystem_vendor != 0) {
        write("subsystem_vendor", fmt::format("0x{:04x}", one.subsystem_vendor));
        write("subsystem_device", fmt::format("0x{:04x}", one.subsystem_device));
    }
    write("class", fmt::format("0x{:06x}", one.class_code));
    write("revision", fmt::format("0x{:02x}", one.revision));
    if (one.total_vfs >= 0) write("sriov_totalvfs", std::to_string(one.total_vfs));
    if (!one.driver.empty()) {
        facts.links[device + "/driver"] = {"../../../bus/pci/drivers/" + one.driver, 0};
        facts.folders["/sys/module"].names.push_back(one.driver);
    }
    if (!one.group.empty()) {
        facts.links[device + "/iommu_group"] = {"../../../kernel/iommu_groups/" + one.group, 0};
        facts.folders["/sys/kernel/iommu_groups"].names.push_back(one.group);
    }
    if (one.pf.empty()) return;
    facts.links[device + "/physfn"] = {"../" + one.pf, 0};
    auto const of_pf = "/sys/bus/pci/devices/" + one.pf + "/virtfn";
    int index = 0;
    while (facts.links.contains(of_pf + std::to_string(index))) ++index;
    facts.links[of_pf + std::to_string(index)] = {"../" + one.address, 0};
}

}  // namespace

fs::path folder() {
    auto const* const named = std::getenv("VFMGR_RECORDINGS");
    auto const place = named ? fs::path(named) : test::repository() / "../shared/data";
    return fs::is_directory(place) ? place : fs::path();
}

std::string content(std::string const& name) {
    auto const path = folder() / name;
    if (path.extension() == ".gz") return said_by({"gzip", "-dc", path});
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    if (text.str().empty()) throw std::runtime_error(name + " can't be read");
    return text.str();
}

void unpack(std::string const& name, fs::path const& into) {
    said_by({"tar", "xzf", folder() / name, "-C", into, "--no-same-owner"});
    said_by({"chmod", "-R", "u+rwX", into});
}

Facts collected(std::string const& name, std::string const& inner) {
    test::TemporaryFolder const unpacked;
    unpack(name, unpacked.path());
    return collect({CheckedMachine::host, unpacked.file(inner)});
}

std::vector<std::string> all_names() {
    std::vector<std::string> names;
    for (auto const& entry : fs::recursive_directory_iterator(folder()))
        if (entry.is_regular_file() && entry.path().filename() != "README.md")
            names.push_back(entry.path().lexically_relative(folder()));
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<Function> functions_in(std::string const& lspci) {
    static std::regex const line(
        R"((?:IOMMU group (\d+) )?((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .*)"
        R"(\[([0-9a-f]{4})\]: .*\[([0-9a-f]{4}):([0-9a-f]{4})\](?: \(rev ([0-9a-f]{2})\))?.*)");
    auto const number = [](std::string const& text) {
        return text.empty() ? 0U : static_cast<unsigned>(std::stoul(text, nullptr, 16));
    };
    std::vector<Function> functions;
    std::istringstream lines(lspci);
    for (std::string text; std::getline(lines, text);) {
        std::smatch part;
        if (!std::regex_match(text, part, line)) continue;
        Function one;
        one.address = part[2].length() == 7 ? "0000:" + part[2].str() : part[2].str();
        one.class_code = number(part[3]) << 8U;
        one.vendor = number(part[4]);
        one.device = number(part[5]);
        one.revision = number(part[6]);
        one.group = part[1];
        functions.push_back(one);
    }
    return functions;
}

Facts machine_with(std::vector<Function> const& functions) {
    Facts facts;
    facts.provenance = Provenance::recorded;
    facts.patterns = {"*"};
    for (auto const& one : functions) add(facts, one);
    return facts;
}

Facts machine_with(std::vector<Function> const& functions, std::string log) {
    auto facts = machine_with(functions);
    facts.files["/dev/kmsg"] = {std::move(log), 0};
    return facts;
}

std::string said(Facts const& facts, std::string_view rule) {
    auto report = diagnose(facts, all_rules());
    std::erase_if(report.findings, [&](auto const& finding) { return finding.rule != rule; });
    // Together, devices with the same fault are one finding; so each is told by itself, too.
    auto text = describe(report, {.all = true});
    for (auto const& finding : report.findings) {
        auto one = report;
        one.findings = {finding};
        text += describe(one, {.all = true});
    }
    return text;
}

namespace {

class AllRecordings : public Recordings {};

TEST_F(AllRecordings, AreReadOrItIsSaidWhyNot) {
    for (auto const& name : all_names())
        EXPECT_TRUE(std::ranges::any_of(readers,
                                        [&](Reader const& one) { return fits(one.pattern, name); }))
            << name << " is new: assert what is notable in it, or say in this file why nothing "
            << "reads its form";
    auto const names = all_names();
    for (auto const& one : readers)
        EXPECT_TRUE(std::ranges::any_of(
            names, [&](std::string const& name) { return fits(one.pattern, name); }))
            << one.pattern << " is not there any more";
}

// Whatever the source of a text: one in the wrong format is reported in words or left out.
TEST_F(AllRecordings, CrashNoParserAndNoRule) {
    for (auto const& name : all_names()) {
        if (name.ends_with(".tar.gz")) continue;  // SysfsRecordings
        auto const log = content(name);
        auto const text = log.substr(0, 1 << 14);  // the collector keeps this much
        auto facts = machine_with({{.address = "0000:41:00.0", .total_vfs = 8}}, log);
        for (auto const* const path :
             {"/proc/cmdline", "/proc/cpuinfo", "/proc/modules", "/proc/interrupts",
              "/proc/driver/nvidia/version", "/sys/bus/pci/devices/0000:41:00.0/config",
              "/etc/default/grub", "/etc/netplan/a.yaml", "/etc/modprobe.d/a.conf",
              "/etc/systemd/network/a.link", "/etc/systemd/system/a.service", "/etc/rc.local",
              "/etc/udev/rules.d/a.rules", "/etc/sysconfig/network-scripts/ifcfg-a",
              "/etc/NetworkManager/system-connections/a"})
            facts.files[path] = {text, 0};
        for (auto const* const command : {"systemctl show a", "ofed_info -s",
                                          "mstconfig -e -d 0000:41:00.0 q", "nft -t list ruleset"})
            facts.commands[command] = {text, {}, 0, 0};
        auto const found = diagnose(facts, all_rules()).findings;
        for (auto const& finding : found)
            EXPECT_FALSE(finding.detail.empty()) << name << " " << finding.rule;
        auto const again = from_bundle(to_bundle(facts));
        ASSERT_TRUE(again) << name << ": " << again.error().detail;
        EXPECT_EQ(*again, facts) << name;
        EXPECT_FALSE(from_bundle(text)) << name;
    }
}

}  // namespace
}  // namespace vfmgr::checks::recordings

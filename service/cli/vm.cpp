// SPDX-License-Identifier: Apache-2.0
// Virtual machines: what libvirt knows of them, and the VFs that they have.
#include <fmt/format.h>

#include <algorithm>

#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

// Devices of the running VM and of its persistent XML, each once. Of one that was adopted, the
// running VM has another name until it stops.
std::vector<VmHostdev> hostdevs(VmInfo const& vm) {
    auto all = vm.live;
    for (auto const& device : vm.config) {
        auto const same = std::ranges::find(all, device.pci, &VmHostdev::pci);
        if (same == all.end())
            all.push_back(device);
        else if (is_ours(device))
            *same = device;
    }
    return all;
}

Table vm_table(std::vector<VmInfo> const& vms) {
    Table table{{"VM", "UUID", "STATE", "VFS", "PERSISTENT", "VSOCK", "FREE PORTS"}, {}};
    for (auto const& vm : vms)
        table.rows.push_back({cell(vm.name), cell(vm.uuid), cell(vm.state),
                              cell(std::ranges::count_if(hostdevs(vm), is_ours)),
                              cell(vm.persistent), cell(vm.has_vsock), cell(vm.free_pcie_ports)});
    return table;
}

Table attached_table(std::vector<Attachment> const& attachments) {
    Table table{{"VF", "ATTACHMENT", "PCI", "NETWORK", "ADDRESS", "STATE", "VERIFIED", "AT"}, {}};
    for (auto const& each : attachments)
        table.rows.push_back({cell(each.vf), cell(each.id), cell(each.vf_pci),
                              cell(each.spec.network), cell(each.address), cell(each.state),
                              cell(each.verification, &Verification::verdict),
                              cell(each.verification, &Verification::started_at)});
    return table;
}

// PCI devices that somebody else gave the VM.
Table foreign_table(VmInfo const& vm) {
    auto const has = [](std::vector<VmHostdev> const& part, PciAddress const& pci) {
        return cell(find_hostdev(part, pci) != nullptr);
    };
    Table table{{"PCI", "ALIAS", "MANAGED", "RUNNING VM", "PERSISTENT XML"}, {}};
    for (auto const& device : hostdevs(vm))
        if (!is_ours(device))
            table.rows.push_back({cell(device.pci), cell(device.alias), cell(device.managed),
                                  has(vm.live, device.pci), has(vm.config, device.pci)});
    return table;
}

Table vm_interface_table(VmInfo const& vm) {
    Table table{{"MAC", "TYPE", "PCI", "STANDBY OF A VF"}, {}};
    for (auto const& each : vm.interfaces)
        table.rows.push_back({cell(each.mac), cell(each.type), cell(each.pci), cell(each.standby)});
    return table;
}

std::string vm_page(VmInfo const& vm, std::vector<Attachment> const& attachments,
                    Options const& options) {
    auto out = facts({{"VM", cell(vm.name)},
                      {"UUID", cell(vm.uuid)},
                      {"state", cell(vm.state)},
                      {"persistent", cell(vm.persistent)},
                      {"autostart", cell(vm.autostart)},
                      {"vsock", cell(vm.has_vsock)},
                      {"CID", cell(vm.vsock_cid)},
                      {"free PCIe ports", cell(vm.free_pcie_ports)},
                      {"free (live)", cell(vm.free_live)},
                      {"free (config)", cell(vm.free_config)},
                      {"hostdev networks", cell(vm.hostdev_networks)}});
    out += section("VFs", attached_table(attachments), options);
    out += section("host devices that are not vfmgr's", foreign_table(vm), options);
    return out + section("network interfaces from libvirt", vm_interface_table(vm), options);
}

Result<void> list_vms(Options const& options) {
    return print_list<VmInfo>(options, {.path = "/v1/vms"}, vm_table);
}

Result<void> show_vm(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const named, resolve_vm(connection, name));
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/vms/" + named.uuid}));
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const vm, value_of<VmInfo>(response));
    VFMGR_TRY(auto const attachments, attachments_of_vm(connection, vm.uuid));
    return print(vm_table({vm}), vm_page(vm, attachments, options), response.body, options);
}

}  // namespace

void add_vm_commands(CLI::App& app, Session& session) {
    auto* const vm = add_group(app, "vm", "show virtual machines");
    add_command(*vm, session, "list", "list all VMs that libvirt knows", list_vms);
    add_named(*vm, session, "show", "show one VM, its VFs and its other host devices",
              {"VM", "name or UUID"}, show_vm);
    add_without_vfs_command(*vm, session);
}

}  // namespace vfmgr

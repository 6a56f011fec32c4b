// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/domain_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "vfmgr/hypervisor/guest_pcie.hpp"
#include "vfmgr/hypervisor/xml_values.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t xml_bytes_max = std::size_t{4} * 1024 * 1024;

// libvirt gives each interface a MAC; one without, or with another kind of address, has none to
// collide with.
std::optional<VmInterface> read_interface(pugi::xml_node const& device) {
    auto const mac = MacAddress::parse(device.child("mac").attribute("address").value());
    if (!mac) return std::nullopt;
    std::string_view const type = device.attribute("type").value();
    VmInterface interface{*mac, std::string(type), std::nullopt,
                          is(device.child("teaming").attribute("type"), "persistent")};
    if (type == "hostdev") interface.pci = pci_address(device.child("source").child("address"));
    return interface;
}

Result<DomainHostdev> read_hostdev(pugi::xml_node const& device, std::string const& vm) {
    auto const source = device.child("source").child("address");
    auto const pci = pci_address(source);
    // A device that can't be read may be any VF: then the whole domain is unknown.
    if (!pci)
        return fail(Problem::hypervisor_refused,
                    fmt::format("a <{}> of VM {} has no host PCI address that can be parsed",
                                device.name(), vm),
                    fmt::format("check it: virsh dumpxml {}", vm));
    DomainHostdev hostdev{*pci, {}, guest_address(device), is(device.attribute("managed"), "yes")};
    if (auto const alias = device.child("alias").attribute("name"); alias)
        hostdev.alias = alias.value();
    return hostdev;
}

bool is_hot_plug_port(pugi::xml_node const& controller) {
    std::string_view const model = controller.attribute("model").value();
    return (model == "pcie-root-port" || model == "pcie-switch-downstream-port") &&
           !is(controller.child("target").attribute("hotplug"), "off");
}

// Devices that QEMU puts on PCI. Called only for those without any <address>, which happens in
// inactive XML that no QEMU driver has completed: each may take a port when the domain starts.
bool has_pci_place(pugi::xml_node const& device) {
    std::string_view const kind = device.name();
    std::string_view const model = device.attribute("model").value();
    std::string_view const type = device.attribute("type").value();
    static constexpr std::array<std::string_view, 7> usually = {
        "interface", "video", "sound", "vsock", "rng", "filesystem", "shmem"};
    if (std::ranges::find(usually, kind) != usually.end()) return model != "none";
    // q35's own (itco), which libvirt 11 writes into every domain's XML, and ib700 have no slot.
    if (kind == "watchdog") return model == "i6300esb";
    if (kind == "hostdev") return type == "pci" || type == "mdev";
    if (kind == "disk")
        return type == "nvme" || is(device.child("target").attribute("bus"), "virtio");
    if (kind == "input") return is(device.attribute("bus"), "virtio");
    if (kind == "memballoon") return model != "none";
    if (kind == "controller")
        return type == "virtio-serial" || type == "scsi" || (type == "usb" && model != "none");
    return false;
}

// The number that the VM reads for a bus that belongs to no port.
std::optional<std::uint8_t> root_number(pugi::xml_node const& controller) {
    std::string_view const model = controller.attribute("model").value();
    if (model == "pcie-root" || model == "pci-root") return std::uint8_t{0};
    if (model != "pcie-expander-bus" && model != "pci-expander-bus") return std::nullopt;
    auto const given = number(controller.child("target").attribute("busNr"), 0xff);
    return given ? std::optional(static_cast<std::uint8_t>(*given)) : std::nullopt;
}

std::string slot_text(PciAddress const& address) {
    return fmt::format("{:02x}.{}", address.device, address.function);
}

// A port whose bus no driver has numbered yet can have no device on it.
struct Ports {
    std::set<std::uint8_t> buses;
    std::size_t unnumbered = 0;
};

// Where a device can be plugged in: on PCIe ports whose bus no device uses, or in the free slots of
// an i440fx machine's pci.0. Slots 1 and 2 of a "pc" machine belong to its ISA bridge and its first
// video card: libvirt never gives them to a hostdev.
std::vector<PciAddress> find_free_addresses(DomainXml const& domain, Ports const& ports,
                                            pugi::xml_node const& root) {
    std::set<std::uint8_t> used_buses;
    std::set<std::uint8_t> used_slots{0};
    for (auto const& address : domain.guest_addresses) {
        used_buses.insert(address.bus);
        if (address.bus == 0) used_slots.insert(address.device);
    }
    std::vector<PciAddress> free;
    auto const conventional = [](DomainBus const& bus) {
        return bus.bus == 0 && bus.model == "pci-root";
    };
    if (std::ranges::any_of(domain.buses, conventional)) {
        std::string_view const machine =
            root.child("os").child("type").attribute("machine").value();
        if (machine == "pc" || machine.starts_with("pc-")) used_slots.insert({1, 2});
        for (std::uint8_t slot = 0; slot < 32; ++slot)
            if (!used_slots.contains(slot)) free.push_back({0, 0, slot, 0});
    }
    for (auto const bus : ports.buses)
        if (!used_buses.contains(bus)) free.push_back({0, bus, 0, 0});
    return free;
}

// Each device without a place yet is assumed to need one port.
std::uint32_t count_free_ports(DomainXml const& domain, Ports const& ports) {
    auto const free = domain.free_addresses.size() + ports.unnumbered;
    return static_cast<std::uint32_t>(free - std::min<std::size_t>(free, domain.unplaced_devices));
}

Result<pugi::xml_node> parse_root(pugi::xml_document& document, std::string_view xml,
                                  char const* root, char const* what) {
    auto const remedy = "report this with the output of: virsh version";
    if (xml.size() > xml_bytes_max)
        return fail(Problem::hypervisor_refused,
                    fmt::format("libvirt's XML of a {} has {} bytes, more than the limit of {}",
                                what, xml.size(), xml_bytes_max),
                    remedy);
    auto const parsed = document.load_buffer(xml.data(), xml.size());
    auto const node = document.child(root);
    if (!parsed || !node)
        return fail(Problem::hypervisor_refused,
                    fmt::format("libvirt's XML of a {} can't be parsed: {}", what,
                                parsed ? fmt::format("it has no <{}>", root)
                                       : std::string(parsed.description())),
                    remedy);
    return node;
}

Result<void> read_device(pugi::xml_node const& device, DomainXml& domain, Ports& ports) {
    std::string_view const kind = device.name();
    if (kind == "controller" && is(device.attribute("type"), "pci")) {
        auto const index = number(device.attribute("index"), 0xff);
        if (index) {
            auto const bus = static_cast<std::uint8_t>(*index);
            domain.buses.push_back({bus, device.attribute("model").value(), guest_address(device),
                                    root_number(device)});
            if (is_hot_plug_port(device)) ports.buses.insert(bus);
        } else if (is_hot_plug_port(device)) {
            ++ports.unnumbered;
        }
    }
    if (kind == "vsock") {
        domain.has_vsock = true;
        domain.vsock_cid = number(device.child("cid").attribute("address"), 0xffffffff);
    }
    if (kind == "interface")
        if (auto interface = read_interface(device))
            domain.interfaces.push_back(std::move(*interface));
    if (kind == "interface" && is(device.attribute("type"), "network"))
        domain.networks.push_back(device.child("source").attribute("network").value());
    if (takes_host_pci(device)) {
        VFMGR_TRY(DomainHostdev hostdev, read_hostdev(device, domain.name));
        domain.hostdevs.push_back(std::move(hostdev));
    }
    if (auto const guest = guest_address(device))
        domain.guest_addresses.push_back(*guest);
    else if (!device.child("address") && has_pci_place(device))
        ++domain.unplaced_devices;
    return {};
}

}  // namespace

Result<DomainXml> parse_domain_xml(std::string_view xml) {
    pugi::xml_document document;
    VFMGR_TRY(pugi::xml_node const root, parse_root(document, xml, "domain", "VM"));
    DomainXml domain;
    domain.uuid = root.child("uuid").text().get();
    domain.name = root.child("name").text().get();
    if (domain.uuid.empty() || domain.name.empty())
        return fail(Problem::hypervisor_refused,
                    fmt::format("libvirt's XML of VM '{}' has no UUID or no name", domain.name),
                    "report this with the output of: virsh version");
    if (auto const id = number(root.attribute("id"), 0x7fffffff))
        domain.start_id = static_cast<std::int32_t>(*id);
    Ports ports;
    for (auto const& device : root.child("devices").children())
        VFMGR_CHECK(read_device(device, domain, ports));
    std::ranges::sort(domain.networks);
    domain.networks.erase(std::ranges::unique(domain.networks).begin(), domain.networks.end());
    std::ranges::sort(domain.guest_addresses);
    std::ranges::sort(domain.buses, {}, &DomainBus::bus);
    domain.free_addresses = find_free_addresses(domain, ports, root);
    domain.free_ports = count_free_ports(domain, ports);
    domain.declared = declared_in(root);
    domain.pcie = guest_pcie_in(root);
    return domain;
}

DomainHostdev const* find_alias(DomainXml const& domain, std::string_view alias) {
    auto const it = std::ranges::find_if(
        domain.hostdevs, [&](DomainHostdev const& hostdev) { return hostdev.alias == alias; });
    return it == domain.hostdevs.end() ? nullptr : &*it;
}

DomainHostdev const* find_host_pci(DomainXml const& domain, PciAddress const& pci) {
    auto const it = std::ranges::find(domain.hostdevs, pci, &DomainHostdev::pci);
    return it == domain.hostdevs.end() ? nullptr : &*it;
}

// libvirt's bus numbers are names of its controllers: the VM's firmware numbers buses on its own.
std::optional<std::string> path_in_guest(DomainXml const& domain, PciAddress const& guest) {
    auto text = slot_text(guest);
    auto bus = guest.bus;
    for (std::size_t hops = 0; hops <= domain.buses.size(); ++hops) {
        auto const at = std::ranges::find(domain.buses, bus, &DomainBus::bus);
        if (at == domain.buses.end()) return std::nullopt;
        if (at->root) return fmt::format("{:02x}/{}", *at->root, text);
        if (!at->at) return std::nullopt;
        text = fmt::format("{}/{}", slot_text(*at->at), text);
        bus = at->at->bus;
    }
    return std::nullopt;  // more hops than buses: the controllers' addresses form a cycle
}

bool can_place(DomainXml const& domain, PciAddress const& guest) {
    auto const has_bus = [&](DomainBus const& bus) { return bus.bus == guest.bus; };
    auto const same_slot = [&](PciAddress const& other) {
        return other.domain == guest.domain && other.bus == guest.bus &&
               other.device == guest.device;
    };
    return std::ranges::any_of(domain.buses, has_bus) &&
           std::ranges::none_of(domain.guest_addresses, same_slot);
}

Result<std::optional<std::string>> hostdev_pool_name(std::string_view network_xml) {
    pugi::xml_document document;
    VFMGR_TRY(pugi::xml_node const root, parse_root(document, network_xml, "network", "network"));
    if (!is(root.child("forward").attribute("mode"), "hostdev")) return std::nullopt;
    return std::string(root.child("name").text().get());
}

VmInfo vm_info(DomainXml const* live, DomainXml const* config,
               std::vector<std::string> const& hostdev_networks) {
    auto const hostdevs = [](DomainXml const* domain) {
        std::vector<VmHostdev> list;
        if (domain)
            for (auto const& hostdev : domain->hostdevs)
                list.push_back(
                    {hostdev.pci, hostdev.alias,
                     hostdev.guest ? path_in_guest(*domain, *hostdev.guest) : std::nullopt,
                     hostdev.managed});
        return list;
    };
    assert(live || config);
    VmInfo vm;
    auto const& now = live ? *live : *config;
    auto const& lasting = config ? *config : *live;
    vm.uuid = now.uuid;
    vm.name = now.name;
    vm.persistent = config != nullptr;
    vm.has_vsock = lasting.has_vsock;
    if (live) {
        vm.start_id = live->start_id;
        vm.vsock_cid = live->vsock_cid;
    }
    vm.free_pcie_ports = now.free_ports;
    vm.declared = now.declared.vfs;
    vm.declared_wrong = now.declared.wrong;
    if (live) vm.free_live = live->free_addresses;
    if (config) vm.free_config = config->free_addresses;
    if (config) vm.pcie = config->pcie;
    vm.live = hostdevs(live);
    vm.config = hostdevs(config);
    vm.interfaces = now.interfaces;
    for (auto const& interface : lasting.interfaces)
        if (std::ranges::find(vm.interfaces, interface) == vm.interfaces.end())
            vm.interfaces.push_back(interface);
    for (auto const& pool : hostdev_networks)
        if (std::ranges::find(now.networks, pool) != now.networks.end() ||
            std::ranges::find(lasting.networks, pool) != lasting.networks.end())
            vm.hostdev_networks.push_back(pool);
    return vm;
}

std::string vsock_xml() {
    return "<vsock model='virtio'><cid auto='yes'/></vsock>";
}

std::string to_xml(DomainHostdev const& hostdev) {
    pugi::xml_document document;
    auto root = document.append_child("hostdev");
    root.append_attribute("mode") = "subsystem";
    root.append_attribute("type") = "pci";
    root.append_attribute("managed") = "no";
    root.append_child("driver").append_attribute("name") = "vfio";
    write_address(root.append_child("source"), hostdev.pci, nullptr);
    if (hostdev.alias) root.append_child("alias").append_attribute("name") = hostdev.alias->c_str();
    if (hostdev.guest) write_address(root, *hostdev.guest, "pci");
    std::ostringstream text;
    document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration);
    return text.str();
}

Result<Presence> presence(DomainXml const& domain, XmlPart part, AttachHostdev const& step) {
    auto const alias = hostdev_alias(step.attachment);
    auto const where = part == XmlPart::live ? "live" : "persistent";
    if (auto const* ours = find_alias(domain, alias)) {
        if (ours->pci == step.pci) return Presence::present;
        return fail(Problem::conflict,
                    fmt::format("device {} of VM {} ({}) is {}, not {}", alias, domain.name, where,
                                to_string(ours->pci), to_string(step.pci)),
                    fmt::format("detach attachment {} and attach it again", step.attachment));
    }
    if (auto const* other = find_host_pci(domain, step.pci))
        return fail(
            Problem::vf_in_use,
            fmt::format("{} is already in VM {} ({}), as {}", to_string(step.pci), domain.name,
                        where, other->alias ? *other->alias : "a device without an alias"),
            fmt::format("detach it from VM {} first, or request another VF", domain.name));
    return Presence::absent;
}

}  // namespace vfmgr

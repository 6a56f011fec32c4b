// SPDX-License-Identifier: Apache-2.0
// A PF: what it is, what is observed of it, and what is desired. Values; any thread.
#include "api/types/pf.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

template <class T>
bool both(std::optional<T> const& a, std::optional<T> const& b) {
    return a && b;
}

template <class T>
bool differ(std::optional<T> const& a, std::optional<T> const& b) {
    return both(a, b) && *a != *b;
}

void add(std::string& text, char const* name, std::string const& value) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + value;
}

bool acceptable_serial(std::string_view serial) {
    constexpr std::size_t length_max = 255;  // the limit of VPD
    auto const printable = [](char c) { return c >= ' ' && c <= '~'; };
    return !serial.empty() && serial.size() <= length_max && std::ranges::all_of(serial, printable);
}

}  // namespace

template <class F, Of<PfIdentity> V>
void fields(F& f, V& identity) {
    f.nullable("mac", identity.mac);
    f.nullable("guid", identity.guid);
    f.nullable("serial", identity.serial);
}

bool empty(PfIdentity const& identity) {
    return !identity.mac && !identity.guid && !identity.serial;
}

std::string to_string(PfIdentity const& identity) {
    std::string text;
    if (identity.mac) add(text, "MAC", to_string(*identity.mac));
    if (identity.guid) add(text, "GUID", to_string(*identity.guid));
    if (identity.serial) add(text, "serial", *identity.serial);
    return text.empty() ? "an unknown identity" : text;
}

SamePf same_pf(PfIdentity const& known, PfIdentity const& observed) {
    if (differ(known.mac, observed.mac) || differ(known.guid, observed.guid) ||
        differ(known.serial, observed.serial))
        return SamePf::no;
    return both(known.mac, observed.mac) || both(known.guid, observed.guid) ? SamePf::yes
                                                                            : SamePf::unknown;
}

PfIdentity completed(PfIdentity known, PfIdentity const& observed) {
    auto const same = same_pf(known, observed);
    bool const is_first = empty(known);
    // The identity was read without a driver, so only the card's serial is known.
    bool const one_card = both(known.serial, observed.serial) && !known.mac && !known.guid;
    if (same == SamePf::no || !(same == SamePf::yes || is_first || one_card)) return known;
    if (!known.mac) known.mac = observed.mac;
    if (!known.guid) known.guid = observed.guid;
    if (!known.serial) known.serial = observed.serial;
    return known;
}

void check(JsonReader& reader, PfIdentity const& identity) {
    if (identity.serial && !acceptable_serial(*identity.serial))
        reader.complain("serial", "must be 1 to 255 printable characters");
}

template struct Json<PfIdentity>;

namespace {

// Accepts a single name below /sys/bus/pci/drivers.
bool can_be_a_drivers(std::string_view name) {
    constexpr std::size_t length_max = 63;
    auto const allowed = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    };
    return !name.empty() && name.size() <= length_max && std::ranges::all_of(name, allowed);
}

std::optional<std::uint16_t> hex_of(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (text.size() != 4) return std::nullopt;
    unsigned value = 0;
    for (char const c : text) {
        auto const digit = digits.find(c);
        if (digit == std::string_view::npos) return std::nullopt;
        value = value * 16 + static_cast<unsigned>(digit);
    }
    return static_cast<std::uint16_t>(value);
}

// A label's key or value: what Kubernetes allows without a prefix.
bool can_be_a_labels(std::string_view text) {
    constexpr std::size_t length_max = 63;
    auto const allowed = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= length_max && std::ranges::all_of(text, allowed);
}

}  // namespace

Result<PciIds> PciIds::parse(std::string_view text) {
    auto const colon = text.find(':');
    auto const vendor = hex_of(text.substr(0, colon));
    auto const device =
        colon == std::string_view::npos ? std::nullopt : hex_of(text.substr(colon + 1));
    if (vendor && device) return PciIds{*vendor, *device};
    return fail(Problem::invalid_request,
                fmt::format("{} is not VENDOR:DEVICE such as 15b3:101d", quoted(text)),
                "lspci -n shows them: four hexadecimal digits each");
}

std::string to_string(PciIds const& ids) {
    return fmt::format("{:04x}:{:04x}", ids.vendor, ids.device);
}

template <class F, Of<VfioVariant> V>
void fields(F& f, V& variant) {
    f.value("module", variant.module);
    f.nullable("driver", variant.driver);
}

template <class F, Of<PfInfo> V>
void fields(F& f, V& pf) {
    f.value("pci", pf.pci);
    f.value("ifname", pf.ifname);
    f.value("driver", pf.driver);
    f.value("vendor_name", pf.vendor_name);
    f.value("device_name", pf.device_name);
    f.value("link_layer", pf.link_layer);
    f.nullable("mac", pf.mac);
    f.maybe("port_guid", pf.port_guid);
    f.value("total_vfs", pf.total_vfs);
    f.value("num_vfs", pf.num_vfs);
    f.value("mtu", pf.mtu);
    f.value("up", pf.up);
    f.value("carrier", pf.carrier);
    f.nullable("controller", pf.controller);
    f.nullable("numa_node", pf.numa_node);
    f.nullable("rdma_device", pf.rdma_device);
    f.nullable("rdma_driver", pf.rdma_driver);
    f.nullable("vfio_variant", pf.vfio_variant);
    f.nullable("eswitch_mode", pf.eswitch_mode);
    f.defaulted("identity", pf.identity);
    f.nullable("pci_ids", pf.pci_ids);
    f.nullable("pcie_root", pf.pcie_root);
}

template <class F, Of<FreeVf> V>
void fields(F& f, V& vf) {
    f.value("index", vf.index);
    f.value("settings", vf.settings);
}

void check(JsonReader& reader, FreeVf const& vf) {
    if (empty(vf.settings)) reader.complain("settings", "must name a setting at least");
}

template <class F, Of<PfSpec> V>
void fields(F& f, V& spec) {
    f.defaulted("mode", spec.mode);
    f.maybe("num_vfs", spec.num_vfs);
    f.maybe("vf_driver", spec.vf_driver);
    f.defaulted("labels", spec.labels);
    f.defaulted("free_vfs", spec.free_vfs);
}

std::string display_name(PfInfo const& pf) {
    return pf.ifname.empty() ? to_string(pf.pci) : pf.ifname;
}

namespace {

// Collects values of which each may be there once.
template <class T>
struct Once {
    JsonReader& reader;
    std::set<T> seen{};

    void add(std::optional<T> const& value, std::string const& pointer) {
        if (value && !seen.insert(*value).second)
            reader.complain(pointer, "is another VF's in this spec");
    }
};

void check_free_vfs(JsonReader& reader, PfSpec const& spec) {
    Once<std::uint16_t> numbers{reader};
    Once<MacAddress> macs{reader};
    Once<Guid> node_guids{reader};
    Once<Guid> port_guids{reader};
    for (std::size_t i = 0; i < spec.free_vfs.size(); ++i) {
        auto const& [index, settings] = spec.free_vfs[i];
        auto const at = reader.member_of("free_vfs", i) + "/";
        numbers.add(index, at + "index");
        macs.add(settings.mac, at + "settings/mac");
        node_guids.add(settings.node_guid, at + "settings/node_guid");
        port_guids.add(settings.port_guid, at + "settings/port_guid");
        if (spec.num_vfs && index >= *spec.num_vfs)
            reader.complain(at + "index",
                            fmt::format("must be below num_vfs, which is {}", *spec.num_vfs));
    }
}

}  // namespace

void check(JsonReader& reader, PfSpec const& spec) {
    if (spec.vf_driver && !can_be_a_drivers(*spec.vf_driver))
        reader.complain("vf_driver", "must be a driver's name as in /sys/bus/pci/drivers");
    constexpr std::size_t labels_max = 64;
    if (spec.labels.size() > labels_max)
        reader.complain("labels", fmt::format("must be at most {}", labels_max));
    for (auto const& [key, value] : spec.labels)
        if (!can_be_a_labels(key) || !can_be_a_labels(value))
            reader.complain("labels/" + pointer_token(key),
                            "must be 1 to 63 letters, digits, '-', '_' and '.', and so its value");
    check_free_vfs(reader, spec);
}

template struct Json<PfInfo>;
template struct Json<PfSpec>;

}  // namespace vfmgr

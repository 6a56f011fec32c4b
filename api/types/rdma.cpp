// SPDX-License-Identifier: Apache-2.0
// RDMA devices of a host: their names, software links, and the window for interop. Values; any
// thread.
#include "api/types/rdma.hpp"

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {

template <class F, Of<RdmaGid> V>
void fields(F& f, V& gid) {
    f.value("index", gid.index);
    f.value("gid", gid.gid);
    f.value("type", gid.type);
    f.nullable("address", gid.address);
    f.nullable("ifname", gid.ifname);
}

template <class F, Of<RdmaName> V>
void fields(F& f, V& name) {
    f.value("kind", name.kind);
    f.value("rdma_device", name.rdma_device);
    f.value("port", name.port);
    f.nullable("ifname", name.ifname);
    f.nullable("master", name.master);
    f.nullable("pci", name.pci);
    f.nullable("vf", name.vf);
    f.nullable("represented_by", name.represented_by);
    f.nullable("represents", name.represents);
    f.nullable("phys_port_name", name.phys_port_name);
    f.nullable("driver", name.driver);
    f.nullable("numa_node", name.numa_node);
    f.nullable("netdev_up", name.netdev_up);
    f.nullable("state", name.state);
    f.nullable("phys_state", name.phys_state);
    f.nullable("link_layer", name.link_layer);
    f.nullable("rate", name.rate);
    f.nullable("hca_type", name.hca_type);
    f.nullable("firmware", name.firmware);
    f.nullable("board_id", name.board_id);
    f.nullable("node_guid", name.node_guid);
    f.value("gids", name.gids);
}

template struct Json<RdmaName>;

namespace {

// IB_DEVICE_NAME_MAX and IFNAMSIZ are 64 and 16, including the NUL.
constexpr std::size_t rdma_name_max = 63;
constexpr std::size_t netdev_name_max = 15;

std::optional<std::string> wrong_name(std::string_view name, std::size_t characters_max) {
    if (is_plain_name(name, "_-.", characters_max)) return std::nullopt;
    return fmt::format(
        "must be 1 to {} letters, digits, '_', '-' and '.', the first a letter or digit",
        characters_max);
}

}  // namespace

template <class F, Of<RdmaLinkSpec> V>
void fields(F& f, V& spec) {
    f.value("type", spec.type);
    f.value("ifname", spec.ifname);
}

template <class F, Of<SoftRdmaLink> V>
void fields(F& f, V& link) {
    f.value("name", link.name);
    f.value("type", link.type);
    f.value("ifname", link.ifname);
}

template <class F, Of<RdmaUser> V>
void fields(F& f, V& user) {
    f.nullable("pid", user.pid);
    f.value("comm", user.comm);
    f.value("holds", user.holds);
}

template <class F, Of<ObservedRdmaLink> V>
void fields(F& f, V& observed) {
    f.nullable("type", observed.type);
    f.nullable("ifname", observed.ifname);
    f.value("active", observed.active);
    f.value("users", observed.users);
    f.nullable("users_unknown", observed.users_unknown);
}

template <class F, Of<RdmaLink> V>
void fields(F& f, V& link) {
    f.value("name", link.name);
    f.value("owner", link.owner);
    f.value("state", link.state);
    f.value("detail", link.detail);
    f.value("revision", link.revision);
    f.nullable("desired", link.desired);
    f.nullable("observed", link.observed);
}

std::optional<std::string> wrong_rdma_name(std::string_view name) {
    return wrong_name(name, rdma_name_max);
}
std::optional<std::string> wrong_netdev_name(std::string_view name) {
    return wrong_name(name, netdev_name_max);
}

void check(JsonReader& reader, RdmaLinkSpec const& spec) {
    if (!reader.clean("ifname")) return;
    if (auto wrong = wrong_netdev_name(spec.ifname)) reader.complain("ifname", std::move(*wrong));
}

template struct Json<RdmaLinkSpec>;
template struct Json<SoftRdmaLink>;
template struct Json<ObservedRdmaLink>;
template struct Json<RdmaLink>;

namespace {

constexpr std::uint32_t interop_seconds_max = 3600;
constexpr std::uint32_t interop_message_bytes_max = 8 << 20;

}  // namespace

template <class F, Of<InteropRequest> V>
void fields(F& f, V& request) {
    f.defaulted("seconds", request.seconds);
    f.defaulted("test", request.test);
    f.defaulted("message_bytes", request.message_bytes);
}

template <class F, Of<InteropWindow> V>
void fields(F& f, V& clients) {
    f.value("attachment", clients.attachment);
    f.value("address", clients.address);
    f.value("test", clients.test);
    f.value("message_bytes", clients.message_bytes);
    f.value("open_until", clients.open_until);
    f.value("commands", clients.commands);
    f.defaulted("rping", clients.rping);
    f.value("served", clients.served);
    f.value("refused", clients.refused);
}

void check(JsonReader& reader, InteropRequest const& request) {
    if (request.seconds < 1 || request.seconds > interop_seconds_max)
        reader.complain("seconds", fmt::format("must be from 1 to {}", interop_seconds_max));
    if (request.message_bytes < 1 || request.message_bytes > interop_message_bytes_max)
        reader.complain("message_bytes",
                        fmt::format("must be from 1 to {}", interop_message_bytes_max));
}

template struct Json<InteropRequest>;
template struct Json<InteropWindow>;

}  // namespace vfmgr

// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/vf.hpp"

#include <fmt/format.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>

#include "vfmgr/kernel/quirks.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t unspecified = 0xFFFFFFFF;

// The length of an attribute, and of the list, has 16 bits (struct nlattr).
constexpr std::size_t list_bytes_max = 65'535;
constexpr std::size_t info_bytes_max = 256;  // of one VF with every attribute: 172
constexpr std::size_t message_bytes_max = list_bytes_max + 64;

// Returns the bytes from the list's first VF to the message's end. The list's own length has 16
// bits and wraps beyond 64 KiB, yet the message has every VF (rtnl_fill_vf(), nla_nest_end()):
// iproute2 then prints "Truncated VF list".
ByteView vf_list(ByteView attributes) {
    while (auto const header = front_object<nlattr>(attributes)) {
        if ((header->nla_type & ~NLA_F_NESTED) == IFLA_VFINFO_LIST)
            return after(attributes, sizeof(nlattr));
        if (header->nla_len < sizeof(nlattr)) break;
        attributes = after(attributes, header->nla_len);
    }
    return {};
}

// Every struct inside IFLA_VF_INFO begins with the VF's number. The position is no index: the
// kernel leaves out a VF whose ndo_get_vf_config fails.
std::optional<std::uint16_t> index_of(Attributes const& info) {
    for (std::uint16_t const type : {IFLA_VF_MAC, IFLA_VF_VLAN, IFLA_VF_LINK_STATE, IFLA_VF_RATE})
        if (auto const index = info.value<std::uint32_t>(type))
            return *index <= UINT16_MAX ? std::optional(static_cast<std::uint16_t>(*index))
                                        : std::nullopt;
    return std::nullopt;
}

std::optional<bool> parse_switch(Attributes const& info, std::uint16_t type) {
    auto const setting = info.value<ifla_vf_trust>(type);  // all switches have its layout
    if (!setting || setting->setting == unspecified) return std::nullopt;
    return setting->setting != 0;
}

std::uint16_t vlan_id(std::uint32_t reported) {
    constexpr std::uint16_t bits = 0xFFF;
    auto const id = static_cast<std::uint16_t>(reported & bits);
    return id == quirks::vlan_of_the_vm ? std::uint16_t{0} : id;
}

std::optional<Vlan> parse_vlan(Attributes const& info) {
    auto const listed = info.nested(IFLA_VF_VLAN_LIST).value<ifla_vf_vlan_info>(IFLA_VF_VLAN_INFO);
    Vlan vlan;
    if (listed) {
        vlan.id = vlan_id(listed->vlan);
        vlan.qos = static_cast<std::uint8_t>(listed->qos & 0x7U);
        if (big_endian(listed->vlan_proto) == ETH_P_8021AD) vlan.proto = VlanProtocol::dot1ad;
        return vlan;
    }
    auto const plain = info.value<ifla_vf_vlan>(IFLA_VF_VLAN);
    if (!plain) return std::nullopt;
    vlan.id = vlan_id(plain->vlan);
    vlan.qos = static_cast<std::uint8_t>(plain->qos & 0x7U);
    return vlan;
}

constexpr std::array<std::pair<LinkState, std::uint32_t>, 3> link_states = {
    {{LinkState::auto_, IFLA_VF_LINK_STATE_AUTO},
     {LinkState::enable, IFLA_VF_LINK_STATE_ENABLE},
     {LinkState::disable, IFLA_VF_LINK_STATE_DISABLE}}};

std::optional<LinkState> parse_link_state(Attributes const& info) {
    auto const reported = info.value<ifla_vf_link_state>(IFLA_VF_LINK_STATE);
    for (auto const& [state, number] : link_states)
        if (reported && reported->link_state == number) return state;
    return std::nullopt;
}

std::optional<Guid> parse_guid(Attributes const& info, std::uint16_t type) {
    auto const guid = info.value<ifla_vf_guid>(type);
    return guid ? std::optional(Guid{guid->guid}) : std::nullopt;
}

VfSpec parse_ethernet(Attributes const& info) {
    VfSpec spec;
    if (auto const mac = info.value<ifla_vf_mac>(IFLA_VF_MAC)) {
        MacAddress address;
        std::copy_n(std::begin(mac->mac), address.octets.size(), address.octets.begin());
        spec.mac = address;
    }
    spec.vlan = parse_vlan(info);
    spec.spoofchk = parse_switch(info, IFLA_VF_SPOOFCHK);
    spec.trust = parse_switch(info, IFLA_VF_TRUST);
    spec.query_rss = parse_switch(info, IFLA_VF_RSS_QUERY_EN);
    if (auto const rate = info.value<ifla_vf_rate>(IFLA_VF_RATE)) {
        spec.min_tx_rate_mbps = rate->min_tx_rate;
        spec.max_tx_rate_mbps = rate->max_tx_rate;
    }
    return spec;
}

std::optional<VfCounters> parse_counters(Attributes const& stats) {
    bool counted = false;
    auto const counter = [&](std::uint16_t type) {
        auto const value = stats.value<std::uint64_t>(type);
        counted = counted || value.value_or(0) != 0;
        return value;
    };
    VfCounters counters;
    counters.rx_packets = counter(IFLA_VF_STATS_RX_PACKETS);
    counters.rx_bytes = counter(IFLA_VF_STATS_RX_BYTES);
    counters.rx_dropped = counter(IFLA_VF_STATS_RX_DROPPED);
    counters.tx_packets = counter(IFLA_VF_STATS_TX_PACKETS);
    counters.tx_bytes = counter(IFLA_VF_STATS_TX_BYTES);
    counters.tx_dropped = counter(IFLA_VF_STATS_TX_DROPPED);
    counters.multicast = counter(IFLA_VF_STATS_MULTICAST);
    counters.broadcast = counter(IFLA_VF_STATS_BROADCAST);
    return counted ? std::optional(counters) : std::nullopt;
}

// Calls visit(the link's header, the VF's number, its attributes).
template <class Visit>
void for_each_vf(ByteView payload, Visit visit) {
    auto const header = front_object<ifinfomsg>(payload);
    if (!header) return;
    auto const attributes = after(payload, sizeof(ifinfomsg));
    auto left = Attributes(attributes).value<std::uint32_t>(IFLA_NUM_VF).value_or(UINT16_MAX);
    Attributes const list(vf_list(attributes));
    for (auto const& [type, value] : list.all()) {
        if (type != IFLA_VF_INFO || left-- == 0) break;
        Attributes const info(value);
        if (auto const index = index_of(info)) visit(*header, *index, info);
    }
}

// `expected`: an RTEXT_FILTER_ mask.
Result<NlReply> ask_vfs(NlSocket& socket, std::string const& call, int ifindex,
                        std::uint32_t expected, Deadline deadline) {
    ifinfomsg header{};
    header.ifi_index = ifindex;
    NlRequest request(RTM_GETLINK, 0);
    request.header(header);
    request.put<std::uint32_t>(IFLA_EXT_MASK, expected);
    return socket.ask(request, call, deadline);
}

template <class T>
T setting_of(std::uint16_t vf) {
    T setting{};
    setting.vf = vf;
    return setting;
}

// Returns the struct's first `size` bytes, with zeros instead of the padding after them.
template <class T>
std::array<std::byte, sizeof(T)> padded(T const& object, std::size_t size) {
    std::array<std::byte, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), &object, size);
    return bytes;
}

void put_vlan(NlRequest& info, std::uint16_t vf, Vlan const& vlan) {
    if (vlan.proto == VlanProtocol::dot1q) {
        auto setting = setting_of<ifla_vf_vlan>(vf);
        setting.vlan = vlan.id;
        setting.qos = vlan.qos;
        info.put(IFLA_VF_VLAN, setting);
        return;
    }
    ifla_vf_vlan_info const setting{vf, vlan.id, vlan.qos, big_endian(ETH_P_8021AD)};
    auto const bytes = padded(setting, offsetof(ifla_vf_vlan_info, vlan_proto) + sizeof(__be16));
    info.nest(IFLA_VF_VLAN_LIST,
              [&](NlRequest& list) { list.put_bytes(IFLA_VF_VLAN_INFO, bytes); });
}

// With a maximum alone the kernel itself reads the matching minimum (IFLA_VF_TX_RATE).
void put_rates(NlRequest& info, std::uint16_t vf, VfSpec const& spec) {
    if (spec.min_tx_rate_mbps) {
        auto setting = setting_of<ifla_vf_rate>(vf);
        setting.min_tx_rate = *spec.min_tx_rate_mbps;
        setting.max_tx_rate = spec.max_tx_rate_mbps.value_or(0);
        info.put(IFLA_VF_RATE, setting);
    } else if (spec.max_tx_rate_mbps) {
        auto setting = setting_of<ifla_vf_tx_rate>(vf);
        setting.rate = *spec.max_tx_rate_mbps;
        info.put(IFLA_VF_TX_RATE, setting);
    }
}

template <class T>
void put_switch(NlRequest& info, int type, std::uint16_t vf, std::optional<bool> const& on) {
    if (!on) return;
    auto setting = setting_of<T>(vf);
    setting.setting = *on ? 1 : 0;
    info.put(type, setting);
}

void put_link_state(NlRequest& info, std::uint16_t vf, LinkState state) {
    auto setting = setting_of<ifla_vf_link_state>(vf);
    for (auto const& [each, number] : link_states)
        if (each == state) setting.link_state = number;
    info.put(IFLA_VF_LINK_STATE, setting);
}

void put_guid(NlRequest& info, int type, std::uint16_t vf, Guid const& guid) {
    std::array<std::byte, sizeof(ifla_vf_guid)> bytes{};  // with padding between the two
    std::uint32_t const number = vf;
    std::memcpy(bytes.data() + offsetof(ifla_vf_guid, vf), &number, sizeof number);
    std::memcpy(bytes.data() + offsetof(ifla_vf_guid, guid), &guid.value, sizeof guid.value);
    info.put_bytes(type, bytes);
}

void put_all_but_guids(NlRequest& info, std::uint16_t vf, VfSpec const& spec) {
    if (spec.mac) {
        auto setting = setting_of<ifla_vf_mac>(vf);
        std::copy(spec.mac->octets.begin(), spec.mac->octets.end(), std::begin(setting.mac));
        info.put(IFLA_VF_MAC, setting);
    }
    if (spec.vlan) put_vlan(info, vf, *spec.vlan);
    put_rates(info, vf, spec);
    put_switch<ifla_vf_spoofchk>(info, IFLA_VF_SPOOFCHK, vf, spec.spoofchk);
    if (spec.link_state) put_link_state(info, vf, *spec.link_state);
    put_switch<ifla_vf_rss_query_en>(info, IFLA_VF_RSS_QUERY_EN, vf, spec.query_rss);
    put_switch<ifla_vf_trust>(info, IFLA_VF_TRUST, vf, spec.trust);
}

void put_part(NlRequest& info, VfChange const& change, VfPart part) {
    auto const& [vf, spec] = change;
    switch (part) {
        case VfPart::all_but_guids:
            return put_all_but_guids(info, vf, spec);
        case VfPart::node_guid:
            return put_guid(info, IFLA_VF_IB_NODE_GUID, vf, *spec.node_guid);
        case VfPart::port_guid:
            return put_guid(info, IFLA_VF_IB_PORT_GUID, vf, *spec.port_guid);
    }
}

}  // namespace

VfSettings parse_vf_settings(ByteView payload) {
    VfSettings settings;
    for_each_vf(payload, [&](ifinfomsg const& header, std::uint16_t index, Attributes const& info) {
        VfSpec spec;
        // On InfiniBand the MAC is the PF's own and the rest is zeros from a memset: not reported.
        if (header.ifi_type != ARPHRD_INFINIBAND) spec = parse_ethernet(info);
        spec.link_state = parse_link_state(info);
        spec.node_guid = parse_guid(info, IFLA_VF_IB_NODE_GUID);
        spec.port_guid = parse_guid(info, IFLA_VF_IB_PORT_GUID);
        settings[index] = spec;
    });
    return settings;
}

std::vector<VfTraffic> parse_vf_counters(ByteView payload) {
    std::map<std::uint16_t, VfCounters> by_index;
    for_each_vf(payload, [&](ifinfomsg const&, std::uint16_t index, Attributes const& info) {
        if (auto const counters = parse_counters(info.nested(IFLA_VF_STATS)))
            by_index[index] = *counters;
    });
    std::vector<VfTraffic> all;
    for (auto const& [index, counters] : by_index) all.push_back({index, counters});
    return all;
}

Result<VfSettings> read_vf_settings(NlSocket& socket, std::string const& netdev, int ifindex,
                                    Deadline deadline) {
    auto const call = "RTM_GETLINK " + netdev + " VFs";
    // Without statistics twice as many VFs fit the 64 KiB of one attribute.
    VFMGR_TRY(auto const reply,
              ask_vfs(socket, call, ifindex, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS, deadline));
    if (!reply.ack.ok())
        return fail(nl_refusal(
            reply.ack, call, fmt::format("the settings of the VFs of {} can't be read", netdev),
            reply.ack.error == EMSGSIZE ? "update the kernel: before 6.15 its answer for "
                                          "InfiniBand VFs gets too little room"
                                        : "check that the interface still exists: ip link"));
    for (auto const& answer : reply.answers)
        if (answer.type == RTM_NEWLINK) return parse_vf_settings(answer.payload);
    return VfSettings{};
}

Result<std::vector<VfTraffic>> read_vf_counters(NlSocket& socket, std::string const& netdev,
                                                int ifindex, Deadline deadline) {
    auto const call = "RTM_GETLINK " + netdev + " VFs with statistics";
    VFMGR_TRY(auto const reply, ask_vfs(socket, call, ifindex, RTEXT_FILTER_VF, deadline));
    if (!reply.ack.ok())
        return fail(nl_refusal(reply.ack, call,
                               fmt::format("the counters of the VFs of {} can't be read", netdev),
                               "check that the interface still exists: ip -s link"));
    for (auto const& answer : reply.answers)
        if (answer.type == RTM_NEWLINK) return parse_vf_counters(answer.payload);
    return std::vector<VfTraffic>{};
}

VfSpec only(VfSpec const& settings, VfPart part) {
    if (part == VfPart::node_guid) return only(settings, VfAttribute::node_guid);
    if (part == VfPart::port_guid) return only(settings, VfAttribute::port_guid);
    auto rest = settings;
    rest.node_guid.reset();
    rest.port_guid.reset();
    rest.msix_vectors.reset();
    rest.roce.reset();
    return rest;
}

bool has(VfSpec const& settings, VfPart part) {
    if (part == VfPart::node_guid) return settings.node_guid.has_value();
    if (part == VfPart::port_guid) return settings.port_guid.has_value();
    return settings.mac || settings.vlan || settings.spoofchk || settings.trust ||
           settings.link_state || settings.query_rss || settings.min_tx_rate_mbps ||
           settings.max_tx_rate_mbps;
}

VfMessage vf_message(int ifindex, std::span<VfChange const> expected, VfPart part) {
    ifinfomsg header{};
    header.ifi_index = ifindex;
    VfMessage message{NlRequest(RTM_SETLINK, 0), 0};
    message.request.reserve(std::min(message_bytes_max, expected.size() * info_bytes_max));
    message.request.header(header).nest(IFLA_VFINFO_LIST, [&](NlRequest& list) {
        auto const begin = list.body().size();
        for (auto const& one : expected) {
            ++message.carried;
            // The kernel refuses a VF without anything to set (do_setvfinfo()).
            if (!has(one.settings, part)) continue;
            list.nest(IFLA_VF_INFO, [&](NlRequest& info) { put_part(info, one, part); });
            if (list.body().size() - begin > list_bytes_max - info_bytes_max) break;
        }
    });
    return message;
}

Result<VfVerdict> set_vfs(NlSocket& socket, std::string const& call, int ifindex,
                          std::span<VfChange const> expected, VfPart part, Deadline deadline) {
    auto message = vf_message(ifindex, expected, part);
    VFMGR_TRY(auto ack, socket.request(std::move(message.request), call, deadline));
    return VfVerdict{std::move(ack), message.carried};
}

}  // namespace vfmgr

// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/packet_filter.hpp"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr {
namespace {

// NFPROTO_INET, NFPROTO_NETDEV. Their header, <linux/netfilter.h>, conflicts with <netinet/in.h>.
constexpr std::uint8_t family_inet = 1;
constexpr std::uint8_t family_netdev = 5;

// A field of a key fills whole registers of four octets [src nft_set_desc_concat].
constexpr std::size_t mac_room = 8;

constexpr std::uint16_t message_type(int message) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

// Calls `read` for each element's key.
template <class Read>
Result<void> read_set(NlSocket& socket, std::uint8_t family, char const* set, Deadline deadline,
                      Read read) {
    NlRequest request(message_type(NFT_MSG_GETSETELEM), NLM_F_DUMP);
    request.header(nfgenmsg{family, NFNETLINK_V0, 0});
    request.put_text(NFTA_SET_ELEM_LIST_TABLE, nft::table).put_text(NFTA_SET_ELEM_LIST_SET, set);
    auto const answers = socket.dump(request, std::string("NFT_MSG_GETSETELEM ") + set, deadline);
    // For any reason, usually ENOENT: a set that can't be read filters nothing.
    if (!answers && answers.error().problem == Problem::kernel_refused) return {};
    if (!answers) return fail(answers.error());
    for (auto const& answer : *answers)
        if (answer.type == message_type(NFT_MSG_NEWSETELEM))
            for (auto const key : parse_set_elements(answer.payload)) read(key);
    return {};
}

// A table whose `dormant` flag keeps it from filtering counts as one without rules.
Result<bool> is_awake(NlSocket& socket, std::uint8_t family, std::string const& name,
                      Deadline deadline) {
    NlRequest request(message_type(NFT_MSG_GETTABLE), NLM_F_DUMP);
    request.header(nfgenmsg{family, NFNETLINK_V0, 0});
    auto const answers = socket.dump(request, "NFT_MSG_GETTABLE " + name, deadline);
    if (!answers && answers.error().problem == Problem::kernel_refused) return false;
    if (!answers) return fail(answers.error());
    return std::ranges::any_of(*answers, [](NlAnswer const& answer) {
        return answer.type == message_type(NFT_MSG_NEWTABLE) && is_our_table_awake(answer.payload);
    });
}

Result<void> count_rules(NlSocket& socket, std::uint8_t family, std::string const& name,
                         PacketFilter& filter, Deadline deadline) {
    VFMGR_TRY(bool const awake, is_awake(socket, family, name, deadline));
    if (!awake) return {};
    NlRequest request(message_type(NFT_MSG_GETRULE), NLM_F_DUMP);
    request.header(nfgenmsg{family, NFNETLINK_V0, 0});
    request.put_text(NFTA_RULE_TABLE, nft::table);
    auto const answers = socket.dump(request, "NFT_MSG_GETRULE " + name, deadline);
    if (!answers && answers.error().problem == Problem::kernel_refused) return {};
    if (!answers) return fail(answers.error());
    for (auto const& answer : *answers)
        if (answer.type == message_type(NFT_MSG_NEWRULE))
            if (auto const chain = parse_rule_chain(answer.payload))
                ++filter.rules[name + " " + *chain];
    return {};
}

// A VM counts as filtered when both tables list it, and the netdev one its addresses.
struct VmSets {
    std::vector<std::string> inet, netdev;  // raw keys of the sets `vms`

    static std::string text_of(ByteView key) {
        auto const front = key.first(std::min(key.size(), IFNAMSIZ + mac_room));
        return {reinterpret_cast<char const*>(front.data()), front.size()};
    }
};

Result<void> read_vms(NlSocket& socket, PacketFilter& filter, Deadline deadline) {
    VmSets sets;
    VFMGR_CHECK(read_set(socket, family_inet, nft::vms, deadline,
                         [&](ByteView key) { sets.inet.push_back(VmSets::text_of(key)); }));
    VFMGR_CHECK(read_set(socket, family_netdev, nft::vms, deadline,
                         [&](ByteView key) { sets.netdev.push_back(VmSets::text_of(key)); }));
    std::vector<FilteredVm> guests;
    for (auto const* const set : {nft::guests4, nft::guests6})
        VFMGR_CHECK(read_set(socket, family_inet, set, deadline, [&](ByteView key) {
            if (auto vm = parse_vm_key(key)) guests.push_back(std::move(*vm));
        }));
    for (auto const* const set : {nft::talks4, nft::talks6})
        VFMGR_CHECK(read_set(socket, family_netdev, set, deadline, [&](ByteView key) {
            auto vm = parse_vm_key(key);
            auto const has = [text = VmSets::text_of(key)](std::vector<std::string> const& all) {
                return std::ranges::find(all, text) != all.end();
            };
            if (!vm || !has(sets.inet) || !has(sets.netdev)) return;
            vm->guest_plane = std::ranges::find(guests, *vm) != guests.end();
            filter.vms.push_back(std::move(*vm));
        }));
    return {};
}

}  // namespace

Result<std::optional<FilterMonitor>> FilterMonitor::open() {
    constexpr unsigned group = 1U << (NFNLGRP_NFTABLES - 1U);
    VFMGR_TRY(auto socket, listen_to(NETLINK_NETFILTER, group));
    if (!socket) return std::optional<FilterMonitor>{};
    return FilterMonitor(std::move(*socket));
}

bool FilterMonitor::take() {
    std::array<std::byte, 8192> room{};
    bool ours = false;
    while (true) {
        auto const got = ::recv(fd(), room.data(), room.size(), MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno != ENOBUFS) return ours;
        // A lost message, or one longer than the buffer, may have concerned our filter.
        auto const size = static_cast<std::size_t>(got);
        ours = ours || got < 0 || size > room.size() || concerns_our_filter({room.data(), size});
    }
}

bool concerns_our_filter(ByteView datagram) {
    // The table's name is the first attribute of every message that has one, for every object type.
    static_assert(NFTA_TABLE_NAME == 1 && NFTA_CHAIN_TABLE == 1 && NFTA_RULE_TABLE == 1 &&
                  NFTA_SET_TABLE == 1 && NFTA_SET_ELEM_LIST_TABLE == 1);
    return std::ranges::any_of(split_messages(datagram), [](NlAnswer const& message) {
        return message.type >> 8U == NFNL_SUBSYS_NFTABLES &&
               message.type != message_type(NFT_MSG_NEWGEN) &&
               Attributes(after(message.payload, sizeof(nfgenmsg))).text(NFTA_TABLE_NAME) ==
                   nft::table;
    });
}

std::vector<ByteView> parse_set_elements(ByteView payload) {
    std::vector<ByteView> keys;
    Attributes const message(after(payload, sizeof(nfgenmsg)));
    auto const elements = message.nested(NFTA_SET_ELEM_LIST_ELEMENTS);
    for (auto const& element : elements.all()) {
        auto const key = Attributes(element.value).nested(NFTA_SET_ELEM_KEY).find(NFTA_DATA_VALUE);
        if (key) keys.push_back(*key);
    }
    return keys;
}

std::optional<std::string> parse_ifname_key(ByteView key) {
    if (key.size() < IFNAMSIZ) return std::nullopt;
    auto const name = key.first(IFNAMSIZ);
    auto const end = std::ranges::find(name, std::byte{0});
    return std::string(reinterpret_cast<char const*>(name.data()),
                       static_cast<std::size_t>(end - name.begin()));
}

std::optional<FilteredAddress> parse_address_key(ByteView key) {
    auto const ifname = parse_ifname_key(key);
    if (!ifname) return std::nullopt;
    auto const address = ip_address_in(key.subspan(IFNAMSIZ));
    if (!address) return std::nullopt;
    return FilteredAddress{*ifname, *address};
}

std::optional<FilteredVm> parse_vm_key(ByteView key) {
    auto const ifname = parse_ifname_key(key);
    if (!ifname || key.size() < IFNAMSIZ + mac_room) return std::nullopt;
    auto const addresses = key.subspan(IFNAMSIZ + mac_room);
    auto const address = ip_address_in(addresses.first(addresses.size() / 2));
    auto const responder = ip_address_in(addresses.subspan(addresses.size() / 2));
    if (!address || !responder || address->family != responder->family) return std::nullopt;
    return FilteredVm{*ifname, *front_object<MacAddress>(key.subspan(IFNAMSIZ)), *address,
                      *responder, false};
}

bool is_our_table_awake(ByteView payload) {
    Attributes const table(after(payload, sizeof(nfgenmsg)));
    auto const flags = ntohl(table.value<std::uint32_t>(NFTA_TABLE_FLAGS).value_or(0));
    return table.text(NFTA_TABLE_NAME) == nft::table && (flags & NFT_TABLE_F_DORMANT) == 0;
}

std::optional<std::string> parse_rule_chain(ByteView payload) {
    auto chain = Attributes(after(payload, sizeof(nfgenmsg))).text(NFTA_RULE_CHAIN);
    if (!chain || chain->empty()) return std::nullopt;
    return chain;
}

Result<PacketFilter> read_packet_filter(Deadline deadline) {
    PacketFilter filter;
    auto socket = NlSocket::open(NlProtocol::netfilter);
    if (!socket && socket.error().problem == Problem::unsupported) return filter;
    if (!socket) return fail(std::move(socket).error());
    VFMGR_CHECK(read_set(*socket, family_inet, nft::interfaces, deadline, [&](ByteView key) {
        if (auto ifname = parse_ifname_key(key)) filter.interfaces.push_back(std::move(*ifname));
    }));
    for (auto const* const set : {nft::addresses4, nft::addresses6})
        VFMGR_CHECK(read_set(*socket, family_inet, set, deadline, [&](ByteView key) {
            if (auto one = parse_address_key(key)) filter.addresses.push_back(std::move(*one));
        }));
    VFMGR_CHECK(read_vms(*socket, filter, deadline));
    VFMGR_CHECK(count_rules(*socket, family_inet, "inet", filter, deadline));
    VFMGR_CHECK(count_rules(*socket, family_netdev, "netdev", filter, deadline));
    return filter;
}

}  // namespace vfmgr

// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/packet_filter.hpp"

#include <linux/if.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>

namespace vfmgr {
namespace {

// NFPROTO_INET. Its header, <linux/netfilter.h>, can't be there beside <netinet/in.h>.
constexpr std::uint8_t family_inet = 1;

constexpr std::uint16_t message_type(int message) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

// `read` is called for each element's key.
template <class Read>
Result<void> read_set(NlSocket& socket, char const* set, Deadline deadline, Read read) {
    NlRequest request(message_type(NFT_MSG_GETSETELEM), NLM_F_DUMP);
    request.header(nfgenmsg{family_inet, NFNETLINK_V0, 0});
    request.put_text(NFTA_SET_ELEM_LIST_TABLE, nft::table).put_text(NFTA_SET_ELEM_LIST_SET, set);
    auto const answers = socket.dump(request, std::string("NFT_MSG_GETSETELEM ") + set, deadline);
    // Whatever the reason, ENOENT as a rule: what can't be seen there filters nothing.
    if (!answers && answers.error().problem == Problem::kernel_refused) return {};
    if (!answers) return fail(answers.error());
    for (auto const& answer : *answers)
        if (answer.type == message_type(NFT_MSG_NEWSETELEM))
            for (auto const key : parse_set_elements(answer.payload)) read(key);
    return {};
}

}  // namespace

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

Result<PacketFilter> read_packet_filter(Deadline deadline) {
    PacketFilter filter;
    auto socket = NlSocket::open(NlProtocol::netfilter);
    if (!socket && socket.error().problem == Problem::unsupported) return filter;
    if (!socket) return fail(std::move(socket).error());
    VFMGR_CHECK(read_set(*socket, nft::legs, deadline, [&](ByteView key) {
        if (auto ifname = parse_ifname_key(key)) filter.legs.push_back(std::move(*ifname));
    }));
    for (auto const* const set : {nft::addresses4, nft::addresses6})
        VFMGR_CHECK(read_set(*socket, set, deadline, [&](ByteView key) {
            if (auto one = parse_address_key(key)) filter.addresses.push_back(std::move(*one));
        }));
    return filter;
}

}  // namespace vfmgr

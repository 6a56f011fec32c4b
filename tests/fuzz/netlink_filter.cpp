// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of NFT_MSG_NEWSETELEM, with a key read as an interface and an address,
// or as a VM's; of NFT_MSG_NEWRULE and NFT_MSG_NEWTABLE; and as an event.
#include <cstdlib>

#include "vfmgr/netlink/packet_filter.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const bytes = std::as_bytes(std::span(data, size));
    auto const chain = parse_rule_chain(bytes);
    if (chain && (chain->empty() || chain->find('\0') != chain->npos)) std::abort();
    if (is_our_table_awake(bytes) && size < sizeof("vfmgr")) std::abort();
    if (concerns_our_filter(bytes) && size < sizeof(nlmsghdr)) std::abort();
    for (auto const key : parse_set_elements(bytes)) {
        auto const ifname = parse_ifname_key(key);
        if (ifname && ifname->size() > 16) std::abort();
        auto const address = parse_address_key(key);
        if (address && address->ifname != ifname) std::abort();
        auto const vm = parse_vm_key(key);
        if (vm && (vm->ifname != ifname || vm->address.family != vm->responder.family))
            std::abort();
    }
    return 0;
}

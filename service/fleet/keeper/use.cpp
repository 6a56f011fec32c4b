// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/keeper/use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/types/json.hpp"
#include "api/types/network.hpp"

namespace vfmgr::fleet {
namespace {

void add_held(std::vector<HeldIdentity>& all, AttachmentFacts const& attachment) {
    auto const add = [&](Identity identity) {
        all.push_back({std::move(identity), attachment.vm, attachment.vm_uuid, attachment.id,
                       attachment.created_at});
    };
    if (attachment.mac && !attachment.mac->zero()) add({"", *attachment.mac});
    auto const& [node, port] = std::pair(attachment.node_guid, attachment.port_guid);
    if (node && node->value != 0) add({"", *node});
    if (port && port->value != 0 && port != node) add({"", *port});
    if (attachment.address && attachment.network) add({*attachment.network, *attachment.address});
}

// One kind's blocks of the host, and what is not to be had of them.
class OwnBlocks {
  public:
    OwnBlocks(Snapshot const& fleet, std::string_view host, IdentityKind kind,
              std::string_view network) {
        for (auto const& kept : fleet.blocks) {
            auto const& first = kept.block.first;
            if (kept.block.host == host && kind_of(first) == kind && first.network == network)
                blocks_.push_back(&kept.block);
        }
        for (auto const& kept : fleet.claims)
            if (has(kept.claim.identity)) claimed_.insert(kept.claim.identity);
    }
    [[nodiscard]] bool has(Identity const& identity) const {
        return std::ranges::any_of(blocks_,
                                   [&](auto const* block) { return block->contains(identity); });
    }
    [[nodiscard]] bool claimed(Identity const& identity) const {
        return claimed_.contains(identity);
    }
    // Those that no claim has and that are `usable`.
    template <class Usable>
    [[nodiscard]] std::uint64_t count(Usable const& usable) const {
        std::uint64_t count = 0;
        for (auto const* block : blocks_) {
            auto const low = low_bits(block->first);
            auto const size = low_bits(block->last) - low + 1;
            for (std::uint64_t i = 0; i < size; ++i) {
                auto const one = with_low_bits(block->first, low + i);
                count += !claimed(one) && usable(one) ? 1 : 0;
            }
        }
        return count;
    }

  private:
    std::vector<Block const*> blocks_;
    std::set<Identity> claimed_;
};

std::uint64_t used_of(OwnBlocks const& blocks, std::vector<HeldIdentity> const& held) {
    std::set<Identity> used;
    for (auto const& one : held)
        if (blocks.has(one.identity) && !blocks.claimed(one.identity)) used.insert(one.identity);
    return used.size();
}

bool can_attach(PfFacts const& pf) {
    return pf.mode == PfMode::manage || pf.mode == PfMode::enforce;
}

template <class Counts>
std::uint64_t vfs_where(HostDocuments const& documents, Counts const& counts) {
    std::uint64_t vfs = 0;
    for (auto const& pf : documents.pfs->items)
        if (can_attach(pf.facts) && counts(pf.facts)) vfs += pf.facts.num_vfs;
    return vfs;
}

IdentityUse use_of_layer(HostDocuments const& documents, OwnBlocks const& blocks,
                         std::vector<HeldIdentity> const& held, LinkLayer layer) {
    IdentityUse use;
    use.vfs = vfs_where(documents, [&](PfFacts const& pf) {
        return pf.link_layer.value_or(LinkLayer::ethernet) == layer;
    });
    for (auto const& item : documents.attachments->items)
        use.attached += layer == LinkLayer::ethernet ? item.facts.mac && !item.facts.node_guid
                                                     : item.facts.node_guid || item.facts.port_guid;
    use.in_blocks = blocks.count([](Identity const&) { return true; });
    use.used = used_of(blocks, held);
    return use;
}

// The host gives its VMs only addresses of the network's own ranges. It skips the first and last of
// the prefix, and its own.
template <class Item>
IdentityUse use_of_network(HostDocuments const& documents, OwnBlocks const& blocks,
                           std::vector<HeldIdentity> const& held, Item const& item) {
    auto const& [text, network] = item;
    IdentityUse use;
    use.vfs = vfs_where(documents, [&](PfFacts const& pf) {
        return std::ranges::find(network.pfs, pf.pci) != network.pfs.end();
    });
    for (auto const& one : documents.attachments->items)
        use.attached += one.facts.network == network.name && one.facts.address ? 1 : 0;
    auto const document = parse_json(text);
    auto const whole = document ? from_json_document<Network>(*document, UnknownKeys::ignored)
                                : Result<Network>(fail(document.error()));
    use.in_blocks = blocks.count([&](Identity const& identity) {
        auto const& address = std::get<IpAddress>(identity.value);
        if (!whole) return true;
        bool const in_range =
            whole->ranges.empty() || std::ranges::any_of(whole->ranges, [&](auto const& range) {
                return range.contains(address);
            });
        return in_range && can_be_a_vms(*whole, address);
    });
    use.used = used_of(blocks, held);
    return use;
}

std::uint64_t block_size_of(Identities const& ranges, KindUse const& one) {
    if (one.kind == IdentityKind::address) return block_size(address_ranges(ranges, one.network));
    return block_size({});
}

}  // namespace

std::vector<HeldIdentity> held_by(HostDocuments const& documents) {
    std::vector<HeldIdentity> all;
    for (auto const& item : documents.attachments->items) add_held(all, item.facts);
    return all;
}

HeldByHost held_by_all(InventoryView const& view) {
    HeldByHost all;
    for (auto const& part : view.hosts) all.emplace(part->host.name, held_by(part->documents));
    return all;
}

std::map<std::string, Snapshot, std::less<>> by_host(Snapshot const& fleet) {
    std::map<std::string, Snapshot, std::less<>> parts;
    std::vector<Block const*> blocks;
    for (auto const& kept : fleet.blocks) {
        parts[kept.block.host].blocks.push_back(kept);
        blocks.push_back(&kept.block);
    }
    auto const first = [](Block const* block) { return block->first; };
    std::ranges::sort(blocks, {}, first);
    for (auto const& kept : fleet.claims) {
        std::set<std::string> whose{kept.claim.host, kept.claim.from};
        auto const after = std::ranges::upper_bound(blocks, kept.claim.identity, {}, first);
        if (after != blocks.begin() && (*std::prev(after))->contains(kept.claim.identity))
            whose.insert((*std::prev(after))->host);
        for (auto const& host : whose) parts[host].claims.push_back(kept);
    }
    for (auto& [host, part] : parts) part.revision = fleet.revision;
    return parts;
}

std::vector<KindUse> uses_of(HostDocuments const& documents, Identities const& ranges,
                             Snapshot const& fleet, std::string_view host) {
    auto const held = held_by(documents);
    std::vector<KindUse> all;
    for (auto const& [kind, layer] : {std::pair{IdentityKind::mac, LinkLayer::ethernet},
                                      std::pair{IdentityKind::guid, LinkLayer::infiniband}}) {
        OwnBlocks const blocks(fleet, host, kind, "");
        auto const use = use_of_layer(documents, blocks, held, layer);
        if (use.vfs > 0) all.push_back({kind, "", use});
    }
    for (auto const& item : documents.networks->items) {
        auto const& name = item.facts.name;
        if (address_ranges(ranges, name).empty()) continue;
        OwnBlocks const blocks(fleet, host, IdentityKind::address, name);
        auto const use = use_of_network(documents, blocks, held, item);
        if (use.vfs > 0) all.push_back({IdentityKind::address, name, use});
    }
    return all;
}

std::vector<KindUse> missing_of(HostDocuments const& documents, Identities const& ranges,
                                Snapshot const& fleet, std::string_view host) {
    auto all = uses_of(documents, ranges, fleet, host);
    std::erase_if(all, [&](KindUse const& one) {
        return blocks_missing(one.use, block_size_of(ranges, one)) == 0;
    });
    return all;
}

std::vector<IdentityFinding> contested_of(Snapshot const& fleet, Identities const& ranges,
                                          InventoryView const& view) {
    auto held = held_by_all(view);
    std::set<std::string> networks;
    for (auto const& of : ranges.addresses) networks.insert(of.network);
    for (auto& [host, all] : held)
        std::erase_if(all, [&](HeldIdentity const& one) {
            return kind_of(one.identity) == IdentityKind::address &&
                   !networks.contains(one.identity.network);
        });
    auto found = findings(fleet, held);
    std::erase_if(found, [](auto const& one) { return one.kind != FindingKind::contested; });
    return found;
}

std::string described(KindUse const& use) {
    if (use.kind == IdentityKind::mac) return "MACs";
    if (use.kind == IdentityKind::guid) return "GUIDs";
    return fmt::format("addresses of network {}", use.network);
}

}  // namespace vfmgr::fleet

// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/documents.hpp"

#include <fmt/format.h>

#include <utility>

#include "service/fleet/inventory/fields.hpp"
#include "service/fleet/inventory/parts.hpp"

namespace vfmgr::fleet {
namespace {

// A PF's text without its VFs, and the texts of those.
struct SplitPf {
    std::string text;
    std::uint32_t vfs_at = 0;
    std::vector<std::string> vfs;
    std::optional<std::string> complaint{};
};

SplitPf split(std::string_view item, std::size_t vfs_max) {
    SplitPf pf;
    for (Members members(item); members.next();) {
        if (members.key() != "vfs" || !is_array(members.value()) || pf.vfs_at > 0) continue;
        auto const at = static_cast<std::size_t>(members.value().data() - item.data()) + 1;
        pf.vfs_at = static_cast<std::uint32_t>(at);
        for (Elements vfs(members.value()); vfs.next() && pf.vfs.size() <= vfs_max;)
            pf.vfs.emplace_back(vfs.value());
        pf.text = std::string(item.substr(0, at)) +
                  std::string(item.substr(at + members.value().size() - 2));
    }
    if (pf.vfs_at > 0) return pf;
    pf.text = item;
    pf.complaint = "a PF has no list of its VFs";
    return pf;
}

// Collects PFs, with the VFs that come with them.
struct PfReader {
    explicit PfReader(DocumentLimits const& limits)
        : vfs_max(limits.items_max), pfs(limits, "pfs"), vfs(limits, "vfs") {}

    // Returns the PF's address if it can be read.
    std::optional<PciAddress> take(std::string_view item) {
        auto split_pf = split(item, vfs_max);
        auto const pci = pfs.take(std::move(split_pf.text));
        if (!pci) return std::nullopt;
        pfs.last().facts.vfs_at = split_pf.vfs_at;
        if (split_pf.complaint) vfs.complain(*split_pf.complaint);
        for (auto& vf : split_pf.vfs) {
            auto const id = vfs.take(std::move(vf));
            if (!id || id->pf == *pci) continue;
            vfs.complain(fmt::format("{} lists a VF of {}", to_string(*pci), to_string(id->pf)));
            vfs.drop_last();
        }
        return pci;
    }

    std::size_t vfs_max;
    PartBuilder<PfFacts> pfs;
    PartBuilder<VfFacts> vfs;
};

void erase_vfs_of(Part<VfFacts>& vfs, PciAddress const& pf) {
    auto const [begin, end] = vfs_of(pf, vfs);
    auto const at = [&](std::size_t index) {
        return vfs.items.begin() + static_cast<std::ptrdiff_t>(index);
    };
    vfs.items.erase(at(begin), at(end));
}

void put_pfs(HostDocuments& documents, std::vector<std::string> const& items,
             DocumentLimits const& limits, Time at) {
    PfReader reader(limits);
    for (auto const& item : items) reader.take(item);
    documents.pfs = std::move(reader.pfs).part(at);
    documents.vfs = std::move(reader.vfs).part(at);
}

bool put_pf(HostDocuments& documents, std::string const& id, std::string_view item,
            DocumentLimits const& limits, Time at) {
    PfReader reader(limits);
    auto const pci = reader.take(item);
    erase_item(documents, Collection::pfs, id, at);
    if (pci && to_string(*pci) != id) erase_item(documents, Collection::pfs, to_string(*pci), at);
    bool const pf_read = merge(documents.pfs, std::move(reader.pfs).part(at), limits, "pfs");
    bool const vfs_read = merge(documents.vfs, std::move(reader.vfs).part(at), limits, "vfs");
    return pf_read && vfs_read;
}

bool put_identities(HostDocuments& documents, std::string text, Time at) {
    std::string complaint;
    Fields fields(text, "", complaint);
    IdentitiesPart part{{}, {}, {}, at};
    fields.maybe("generation", part.generation);
    if (complaint.empty())
        part.text = std::move(text);
    else
        part.incomplete = {fmt::format("identities: {}", complaint), at};
    documents.identities = std::make_shared<IdentitiesPart const>(std::move(part));
    return complaint.empty();
}

// Calls `use` with the part that holds such items.
template <class Use>
void with_part(HostDocuments& documents, Collection collection, Use use) {
    switch (collection) {
        case Collection::pfs:
            return use(documents.pfs);
        case Collection::vfs:
            return use(documents.vfs);
        case Collection::vms:
            return use(documents.vms);
        case Collection::attachments:
            return use(documents.attachments);
        case Collection::networks:
            return use(documents.networks);
        case Collection::pools:
            return use(documents.pools);
        case Collection::reservations:
            return use(documents.reservations);
        case Collection::identities:
            return;
    }
}

template <class Facts>
std::size_t bytes_of_part(Part<Facts> const& part) {
    std::size_t bytes = sizeof part + part.items.capacity() * sizeof(Item<Facts>);
    for (auto const& item : part.items) bytes += item.text.capacity();
    return bytes;
}

}  // namespace

Result<ListPage> read_list_page(std::string_view body, DocumentLimits const& limits) {
    VFMGR_TRY(auto const text, compact_json(body, {limits.answer_bytes_max}));
    std::string complaint;
    Fields fields(text, "", complaint);
    ListPage page;
    auto const items = fields.slice("items");
    if (!is_array(items)) fields.complain("items", "is no array");
    for (Elements elements(items); elements.next();) {
        if (page.items.size() == limits.items_max) {
            fields.complain("items", "has too many");
            break;
        }
        page.items.emplace_back(elements.value());
    }
    auto const next = fields.slice("next");
    if (!next.empty() && next != "null") page.next = string_in(next);
    if (!next.empty() && next != "null" && !page.next) fields.complain("next", "is no string");
    if (!complaint.empty())
        return fail(Problem::invalid_request, complaint, "upgrade the host or vfmgr-fleetd");
    return page;
}

void put_list(HostDocuments& documents, Collection collection, std::vector<std::string> items,
              DocumentLimits const& limits, Time at) {
    if (collection == Collection::pfs) return put_pfs(documents, items, limits, at);
    with_part(documents, collection, [&]<class Facts>(SharedPart<Facts>& part) {
        PartBuilder<Facts> builder(limits, enum_name(collection));
        for (auto& item : items) builder.take(std::move(item));
        part = std::move(builder).part(at);
    });
}

bool put_item(HostDocuments& documents, Collection collection, std::string const& id,
              std::string_view body, DocumentLimits const& limits, Time at) {
    auto text = compact_json(body, {limits.answer_bytes_max});
    // No object at all: refused where it is read, as any other that can't be.
    if (!text) text = "null";
    if (collection == Collection::identities)
        return put_identities(documents, std::move(*text), at);
    if (collection == Collection::pfs) return put_pf(documents, id, *text, limits, at);
    bool read = false;
    with_part(documents, collection, [&]<class Facts>(SharedPart<Facts>& part) {
        PartBuilder<Facts> builder(limits, enum_name(collection));
        builder.take(std::move(*text));
        erase_item(documents, collection, id, at);
        read = merge(part, std::move(builder).part(at), limits, enum_name(collection));
    });
    return read;
}

void erase_item(HostDocuments& documents, Collection collection, std::string const& id, Time at) {
    with_part(documents, collection, [&]<class Facts>(SharedPart<Facts>& part) {
        auto const key = key_in_path<KeyOf<Facts>>(id);
        if (!key) return;
        auto changed = *part;
        changed.observed_at = at;
        if constexpr (std::is_same_v<Facts, PfFacts>) {
            auto vfs = *documents.vfs;
            erase_vfs_of(vfs, *key);
            documents.vfs = std::make_shared<Part<VfFacts> const>(std::move(vfs));
        }
        std::erase_if(changed.items,
                      [&](Item<Facts> const& item) { return key_of(item.facts) == *key; });
        part = std::make_shared<Part<Facts> const>(std::move(changed));
    });
}

std::pair<std::size_t, std::size_t> vfs_of(PciAddress const& pf, Part<VfFacts> const& vfs) {
    auto const range = std::ranges::equal_range(
        vfs.items, pf, {}, [](Item<VfFacts> const& vf) { return vf.facts.id.pf; });
    auto const at = [&](auto place) { return static_cast<std::size_t>(place - vfs.items.begin()); };
    return {at(range.begin()), at(range.end())};
}

std::string whole_text(Item<PfFacts> const& pf, Part<VfFacts> const& vfs) {
    if (pf.facts.vfs_at == 0) return pf.text;
    auto text = pf.text.substr(0, pf.facts.vfs_at);
    auto const [begin, end] = vfs_of(pf.facts.pci, vfs);
    for (auto at = begin; at < end; ++at) {
        if (at > begin) text += ',';
        text += vfs.items[at].text;
    }
    return text + pf.text.substr(pf.facts.vfs_at);
}

std::size_t bytes_of(HostDocuments const& documents) {
    auto const& of = documents;
    return bytes_of_part(*of.pfs) + bytes_of_part(*of.vfs) + bytes_of_part(*of.vms) +
           bytes_of_part(*of.attachments) + bytes_of_part(*of.networks) + bytes_of_part(*of.pools) +
           bytes_of_part(*of.reservations) + of.identities->text.capacity();
}

}  // namespace vfmgr::fleet

// SPDX-License-Identifier: Apache-2.0
// What one host lists, item by item: its JSON as the host sent it, without white space, and the
// facts that the fleet reads from it. Values; the parts are immutable and shared, so that a copy
// costs a few pointers and a change copies one part.
//
// An item takes its text and 64 to 500 bytes more: sizeof(Item), and what texts of its facts take
// on the heap. Of the fleet's usual items (api/examples): a VF 0.6 kB of text, an attachment with
// its run 2.2 kB, a VM 1 kB. VFs are kept once: a PF's text has a gap where the host has its VFs.
//
// The host's answers are outside input: DocumentLimits bounds them. What does not fit or can't be
// read is not there, and its part says so (`incomplete`): whoever lists the part tells its readers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/time.hpp"
#include "service/fleet/inventory/facts.hpp"

namespace vfmgr::fleet {

enum class Collection {
    pfs,
    vfs,  // comes with the PFs
    vms,
    attachments,
    networks,
    pools,
    reservations,
    identities  // one document
};

struct DocumentLimits {
    std::size_t answer_bytes_max = 16 << 20;  // of one answer
    std::size_t item_bytes_max = 256 << 10;   // of one item; of a PF without its VFs
    std::size_t items_max = 16'384;           // of one part
    std::size_t part_bytes_max = 16 << 20;    // of the texts of one part
};

template <class Facts>
struct Item {
    std::string text;
    Facts facts;
};

// Why a part lacks items that the host has.
struct Incomplete {
    std::string reason;  // of the first of them, one sentence
    Time since{};
    bool operator==(Incomplete const&) const = default;
};

template <class Facts>
struct Part {
    std::vector<Item<Facts>> items{};  // by key, as the host lists them
    std::optional<Incomplete> incomplete{};
    Time observed_at{};  // when the host last answered; the epoch: never

    // Null: there is none.
    [[nodiscard]] Item<Facts> const* find(KeyOf<Facts> const& key) const {
        auto const at = std::ranges::lower_bound(items, key, {}, key_of_item);
        return at == items.end() || key_of_item(*at) != key ? nullptr : &*at;
    }
    [[nodiscard]] static KeyOf<Facts> const& key_of_item(Item<Facts> const& item) {
        return key_of(item.facts);
    }
};
template <class Facts>
using SharedPart = std::shared_ptr<Part<Facts> const>;

// The host's GET /v1/identities. Absent text: it was not read yet.
struct IdentitiesPart {
    std::string text{};
    std::optional<std::uint64_t> generation{};  // absent: the fleet has pushed none
    std::optional<Incomplete> incomplete{};
    Time observed_at{};
};

struct HostDocuments {
    SharedPart<PfFacts> pfs = std::make_shared<Part<PfFacts>>();
    SharedPart<VfFacts> vfs = std::make_shared<Part<VfFacts>>();
    SharedPart<VmFacts> vms = std::make_shared<Part<VmFacts>>();
    SharedPart<AttachmentFacts> attachments = std::make_shared<Part<AttachmentFacts>>();
    SharedPart<NetworkFacts> networks = std::make_shared<Part<NetworkFacts>>();
    SharedPart<PoolFacts> pools = std::make_shared<Part<PoolFacts>>();
    SharedPart<ReservationFacts> reservations = std::make_shared<Part<ReservationFacts>>();
    std::shared_ptr<IdentitiesPart const> identities = std::make_shared<IdentitiesPart>();
};

// --- what hosts answer -------------------------------------------------------------------------

// One page of a host's list, taken apart.
struct ListPage {
    std::vector<std::string> items;     // texts
    std::optional<std::string> next{};  // the cursor of the page that follows
};
[[nodiscard]] Result<ListPage> read_list_page(std::string_view body, DocumentLimits const& limits);

// Replaces a collection by the items of all pages of its list, in any order. With PFs come their
// VFs; VFs alone and identities have no list here.
void put_list(HostDocuments& documents, Collection collection, std::vector<std::string> items,
              DocumentLimits const& limits, Time at);
// Puts one item, the body of an answer, in the place of the one with its key; a PF with its VFs. If
// it can't be read, the item named by `id`, a path's, is no longer there, and the part is
// incomplete. False: that happened.
bool put_item(HostDocuments& documents, Collection collection, std::string const& id,
              std::string_view body, DocumentLimits const& limits, Time at);
// Erases the item, which the host no longer has; a PF with its VFs.
void erase_item(HostDocuments& documents, Collection collection, std::string const& id, Time at);

// The PF's text with its VFs in their place, as the host would send it now.
[[nodiscard]] std::string whole_text(Item<PfFacts> const& pf, Part<VfFacts> const& vfs);
// The VFs of a PF: a range of `vfs`.
[[nodiscard]] std::pair<std::size_t, std::size_t> vfs_of(PciAddress const& pf,
                                                         Part<VfFacts> const& vfs);

// What the documents take, about: sizeof of their items and their texts.
[[nodiscard]] std::size_t bytes_of(HostDocuments const& documents);

}  // namespace vfmgr::fleet

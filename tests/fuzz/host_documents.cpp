// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a host answers. As JSON: accepted as nlohmann accepts it, and the compact text
// means the same. As a page of a list, or an item: what is taken is in order, within its bounds,
// and its text is an object; what is not makes its part incomplete. The first byte chooses the
// list.
#include "service/fleet/inventory/documents.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "service/fleet/inventory/json_slices.hpp"
#include "tests/fuzz/require.hpp"

using namespace vfmgr;
using namespace vfmgr::fleet;

namespace {

constexpr DocumentLimits limits{4096, 1024, 20, 3000};

// nullopt: refused for a number that no double holds.
std::optional<nlohmann::json> parsed(std::string_view text) {
    try {
        return nlohmann::json::parse(text);
    } catch (nlohmann::json::out_of_range const&) {
        return std::nullopt;
    } catch (nlohmann::json::exception const&) {
        return nlohmann::json(nlohmann::json::value_t::discarded);
    }
}

int depth_of(std::string_view text) {
    int depth = 0;
    int most = 0;
    for (char const byte : text) {
        if (byte == '[' || byte == '{') most = std::max(most, ++depth);
        if (byte == ']' || byte == '}') --depth;
    }
    return most;
}

void as_json(std::string_view text) {
    auto const compact = compact_json(text, {limits.answer_bytes_max});
    bool const unusual = text.size() > limits.answer_bytes_max || depth_of(text) > 32 ||
                         text.find('\0') != text.npos || text.starts_with("\xef\xbb\xbf");
    if (!compact && unusual) return;
    auto const expected = parsed(text);
    if (!expected) return;
    require(compact.has_value() == !expected->is_discarded());
    if (!compact) return;
    require(compact->find('\n') == compact->npos && compact->find('\r') == compact->npos);
    require(nlohmann::json::parse(*compact) == *expected);
    require(compact_json(*compact, {limits.answer_bytes_max}) == *compact);
}

template <class Facts>
void check(Part<Facts> const& part) {
    std::size_t bytes = 0;
    for (auto const& item : part.items) {
        require(item.text.starts_with('{') && item.text.size() <= limits.item_bytes_max);
        require(part.find(key_of(item.facts)) == &item);
        bytes += item.text.size();
    }
    require(part.items.size() <= limits.items_max && bytes <= limits.part_bytes_max);
}

void check(HostDocuments const& documents) {
    check(*documents.pfs);
    check(*documents.vfs);
    check(*documents.vms);
    check(*documents.attachments);
    check(*documents.networks);
    check(*documents.pools);
    check(*documents.reservations);
    for (auto const& pf : documents.pfs->items)
        require(compact_json(whole_text(pf, *documents.vfs), {1 << 20}).has_value());
    for (auto const& item : documents.attachments->items)
        require(item.facts.run_at + item.facts.run_bytes <= item.text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    auto const collection = static_cast<Collection>((data[0] - 'a') & 7);
    std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
    as_json(text);
    HostDocuments documents;
    if (auto page = read_list_page(text, limits)) {
        auto const count = page->items.size();
        put_list(documents, collection, std::move(page->items), limits, Time{});
        if (collection == Collection::vms && !documents.vms->incomplete)
            require(documents.vms->items.size() == count);
        check(documents);
    }
    bool const put = put_item(documents, collection, "0000:01:00.0/1", text, limits, Time{});
    if (collection == Collection::attachments)
        require(put || documents.attachments->incomplete.has_value());
    check(documents);
    erase_item(documents, collection, std::string(text.substr(0, 20)), Time{});
    check(documents);
    return 0;
}

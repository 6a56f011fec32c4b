// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/lists.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/http/uri.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/fleet/inventory/json_slices.hpp"
#include "service/fleet/inventory/tenant_items.hpp"
#include "service/routes/cursor.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::uint64_t items_max = 500;

// A place in the order of a list: after this item of this host, which need not be there any more.
struct Place {
    std::string host;
    std::string key;
};

struct PageRequest {
    std::string list;  // the path with its filters, which a cursor belongs to
    std::size_t limit = items_max;
    std::optional<Place> after{};
};

Result<PageRequest> read_page_request(http::Request const& request) {
    auto filters = request.query;
    filters.erase("limit");
    filters.erase("cursor");
    PageRequest page{http::format_target({request.path, std::move(filters)}), items_max, {}};
    if (auto const given = request.query.find("limit"); given != request.query.end()) {
        auto const limit = parse_digits(given->second, {.max = items_max});
        if (!limit || *limit == 0)
            return fail(Problem::invalid_request, fmt::format("limit is {}", quoted(given->second)),
                        fmt::format("give a whole number from 1 to {}", items_max));
        page.limit = *limit;
    }
    auto const cursor = request.query.find("cursor");
    if (cursor == request.query.end()) return page;
    VFMGR_TRY(auto const text, key_in(cursor->second, page.list));
    std::string_view key = text;
    auto const host = take_until(key, '/');
    if (!host) return fail(not_a_cursor(cursor->second));
    page.after = Place{std::string(*host), std::string(key)};
    return page;
}

// Collects the items of one page as text.
class PageText {
  public:
    PageText(std::size_t limit, Tenant const* viewer) : limit_(limit), viewer_(viewer) {}

    // False: the page is full, and there is another item.
    template <class Facts>
    bool take(HostPart const& part, FleetList list, Item<Facts> const& item) {
        auto const text = text_of(part, list, item);
        if (!text) return true;
        if (count_ == limit_) return false;
        if (count_++ > 0) items_ += ',';
        append_with_host(items_, part.host.name, *text);
        last_host_ = &part.host.name;
        last_key_ = key_text(key_of(item.facts));
        return true;
    }
    [[nodiscard]] std::string const& items() const { return items_; }
    [[nodiscard]] std::string last() const { return *last_host_ + "/" + last_key_; }
    // Hosts of which the viewer does not get an item that it should.
    [[nodiscard]] std::vector<std::string> const& unreadable() const { return unreadable_; }

  private:
    template <class Facts>
    std::optional<std::string_view> text_of(HostPart const& part, FleetList list,
                                            Item<Facts> const& item) {
        std::string_view text = item.text;
        if constexpr (std::is_same_v<Facts, PfFacts>)
            text = made_ = whole_text(item, *part.documents.vfs);
        if constexpr (std::is_same_v<Facts, AttachmentFacts>) {
            if (list == FleetList::verifications && item.facts.run_bytes == 0) return std::nullopt;
            if (list == FleetList::verifications)
                text = text.substr(item.facts.run_at, item.facts.run_bytes);
        }
        if (!viewer_) return text;
        auto seen = tenant_text(list, *viewer_, text);
        if (!seen) {
            unreadable_.push_back(part.host.name);
            return std::nullopt;
        }
        made_ = std::move(*seen);
        return made_;
    }

    std::size_t limit_;
    Tenant const* viewer_;
    std::size_t count_ = 0;
    std::string items_;
    std::string made_;
    std::string const* last_host_ = nullptr;
    std::string last_key_;
    std::vector<std::string> unreadable_;
};

// Walks one part from a key on. False: the page is full.
template <class Facts>
bool walk(PageText& page, FleetList list, HostPart const& part, HostFilterState const& filter,
          Part<Facts> const& items, std::optional<KeyOf<Facts>> const& after) {
    auto at = items.items.begin();
    if (after) at = std::ranges::upper_bound(items.items, *after, {}, Part<Facts>::key_of_item);
    for (; at != items.items.end(); ++at)
        if (filter.passes(at->facts) && !page.take(part, list, *at)) return false;
    return true;
}

// Calls `use` with the part that the list is of.
template <class Use>
auto with_list(HostDocuments const& documents, FleetList list, Use use) {
    switch (list) {
        case FleetList::pfs:
            return use(*documents.pfs);
        case FleetList::vfs:
            return use(*documents.vfs);
        case FleetList::vms:
            return use(*documents.vms);
        case FleetList::attachments:
        case FleetList::verifications:
            return use(*documents.attachments);
        case FleetList::networks:
            return use(*documents.networks);
        case FleetList::pools:
            return use(*documents.pools);
        case FleetList::reservations:
            break;
    }
    return use(*documents.reservations);
}

template <class Facts>
std::optional<KeyOf<Facts>> parsed_key(std::string_view text) {
    return parse_key<KeyOf<Facts>>(text);
}

// Returns whether more items follow the page.
Result<bool> fill(PageText& page, InventoryView const& view, FleetList list,
                  ListFilter const& filter, std::optional<Place> const& after) {
    auto const name_of = [](auto const& part) -> std::string_view { return part->host.name; };
    auto at = view.hosts.begin();
    if (after)
        at = std::ranges::lower_bound(view.hosts, std::string_view(after->host), {}, name_of);
    for (; at != view.hosts.end(); ++at) {
        auto const& part = **at;
        if (!filter.of.matches(part.host)) continue;
        HostFilterState const state(filter, part);
        if (!state.can_pass(list)) continue;
        bool const goes_on = after && after->host == part.host.name;
        bool wrong = false;
        bool const whole =
            with_list(part.documents, list, [&]<class Facts>(Part<Facts> const& items) {
                std::optional<KeyOf<Facts>> key;
                if (goes_on) key = parsed_key<Facts>(after->key);
                wrong = goes_on && !key;
                return wrong || walk(page, list, part, state, items, key);
            });
        if (wrong) return fail(not_a_cursor(after->host + "/" + after->key));
        if (!whole) return true;
    }
    return false;
}

struct StaleLine {
    Time since{};
    std::string_view why{};
    std::string_view detail{};
};

// Absent: the host's part of the list is as the host has it, as far as is known.
std::optional<StaleLine> staleness(HostPart const& part, FleetList list) {
    return with_list(part.documents, list, [&](auto const& items) -> std::optional<StaleLine> {
        if (items.observed_at == Time{})
            return StaleLine{part.stale ? part.stale->since : part.known_since, "not_read", {}};
        if (part.stale) return StaleLine{part.stale->since, enum_name(part.stale->why), {}};
        if (items.incomplete)
            return StaleLine{items.incomplete->since, "incomplete", items.incomplete->reason};
        return std::nullopt;
    });
}

bool has_something(Tenant const& viewer, HostPart const& part) {
    auto const& documents = part.documents;
    return std::ranges::any_of(
               viewer.vms,
               [&](auto const& uuid) { return documents.vms->find(uuid) != nullptr; }) ||
           std::ranges::any_of(documents.attachments->items, [&](auto const& item) {
               return std::ranges::find(viewer.vms, item.facts.vm_uuid) != viewer.vms.end();
           });
}

void append_stale(std::string& out, HostPart const& part, StaleLine const& line, bool to_tenant) {
    auto const detail = line.detail.empty() || to_tenant ? std::string("null")
                                                         : to_json_text(std::string(line.detail));
    out += fmt::format(R"({}{{"host":"{}","since":"{}","why":"{}","detail":{}}})",
                       out.empty() ? "" : ",", part.host.name, to_rfc3339(line.since), line.why,
                       detail);
}

// Returns ,"stale":[…] and what belongs to it.
std::string stale_members(InventoryView const& view, FleetList list, ListFilter const& filter,
                          std::vector<std::string> const& unreadable) {
    std::string lines;
    std::size_t count = 0;
    for (auto const& each : view.hosts) {
        auto const& part = *each;
        if (!filter.of.matches(part.host)) continue;
        auto line = staleness(part, list);
        bool const missed = std::ranges::find(unreadable, part.host.name) != unreadable.end();
        if (!line && missed) line = StaleLine{part.known_since, "incomplete", {}};
        if (!line || (filter.viewer && !missed && !has_something(*filter.viewer, part))) continue;
        if (++count <= stale_max) append_stale(lines, part, *line, filter.viewer != nullptr);
    }
    auto text = fmt::format(R"(,"stale":[{}])", lines);
    if (count > stale_max) text += fmt::format(R"(,"stale_more":{})", count - stale_max);
    return text;
}

}  // namespace

std::vector<std::string> list_parameters(FleetList list) {
    auto names = list_filter_parameters(list);
    names.insert(names.end(), {"limit", "cursor"});
    return names;
}

Result<http::Response> list_page(InventoryView const& view, FleetList list,
                                 http::Request const& request, Tenant const* viewer) {
    VFMGR_TRY(auto const asked, read_page_request(request));
    VFMGR_TRY(auto const filter, read_list_filter(list, request, viewer));
    PageText page(asked.limit, viewer);
    VFMGR_TRY(bool const more, fill(page, view, list, filter, asked.after));
    http::Response response;
    response.body = R"({"items":[)" + page.items() + R"(],"next":)";
    response.body += more ? "\"" + make_cursor(asked.list, page.last()) + "\"" : "null";
    response.body += stale_members(view, list, filter, page.unreadable()) + "}";
    return response;
}

}  // namespace vfmgr::fleet

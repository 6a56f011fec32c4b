// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/inventory.hpp"

#include <algorithm>
#include <utility>

namespace vfmgr::fleet {

HostPart const* InventoryView::find(std::string_view name) const {
    auto const at = std::ranges::lower_bound(
        hosts, name, {}, [](auto const& part) -> std::string_view { return part->host.name; });
    return at == hosts.end() || (*at)->host.name != name ? nullptr : at->get();
}

// Each part is copied once between two publications.
HostPart* Inventory::changed(std::string_view name) {
    auto const at = hosts_.find(name);
    if (at == hosts_.end()) return nullptr;
    changed_ = true;
    auto& copy = unpublished_[at->first];
    if (!copy) {
        copy = std::make_shared<HostPart>(*at->second);
        at->second = copy;
    }
    return copy.get();
}

void Inventory::put_host(HostEntry host, Time now) {
    if (auto const* const known = find(host.name); known && known->host == host) return;
    if (auto* const part = changed(host.name)) {
        part->host = std::move(host);
        return;
    }
    auto name = host.name;
    auto const part = std::make_shared<HostPart>(HostPart{std::move(host), {}, {}, now});
    hosts_.emplace(name, part);
    unpublished_.emplace(std::move(name), part);
    changed_ = true;
}

void Inventory::remove_host(std::string_view name) {
    auto const at = hosts_.find(name);
    if (at == hosts_.end()) return;
    hosts_.erase(at);
    if (auto const copy = unpublished_.find(name); copy != unpublished_.end())
        unpublished_.erase(copy);
    changed_ = true;
}

HostPart const* Inventory::find(std::string_view name) const {
    auto const at = hosts_.find(name);
    return at == hosts_.end() ? nullptr : at->second.get();
}

void Inventory::put_documents(std::string_view name, HostDocuments documents) {
    if (auto* const part = changed(name)) part->documents = std::move(documents);
}

void Inventory::put_stale(std::string_view name, std::optional<Stale> stale) {
    auto const* const known = find(name);
    if (!known || known->stale == stale) return;
    changed(name)->stale = stale;
}

void Inventory::publish() {
    if (!std::exchange(changed_, false)) return;
    unpublished_.clear();
    auto view = std::make_shared<InventoryView>();
    view->hosts.reserve(hosts_.size());
    for (auto const& [name, part] : hosts_) view->hosts.push_back(part);
    std::shared_ptr<InventoryView const> published = std::move(view);
    std::lock_guard const lock(mutex_);
    view_.swap(published);
}

std::shared_ptr<InventoryView const> Inventory::snapshot() const {
    std::lock_guard const lock(mutex_);
    return view_;
}

}  // namespace vfmgr::fleet

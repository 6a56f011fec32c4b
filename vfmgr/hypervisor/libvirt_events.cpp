// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_events.hpp"

#include <libvirt/virterror.h>

#include <array>
#include <thread>

#include "vfmgr/hypervisor/libvirt_domain.hpp"
#include "vfmgr/hypervisor/libvirt_error.hpp"

namespace vfmgr {
namespace {

using Shared = std::shared_ptr<LibvirtEvents>;

LibvirtEvents& events_of(void* opaque) {
    return **static_cast<Shared*>(opaque);
}
void release_callback(void* opaque) {
    delete static_cast<Shared*>(opaque);
}

int lifecycle(virConnectPtr, virDomainPtr domain, int event, int, void* opaque) {
    events_of(opaque).domain_changed(uuid_of(domain), event);
    return 0;
}
void device_added(virConnectPtr, virDomainPtr domain, char const*, void* opaque) {
    events_of(opaque).device_added(uuid_of(domain));
}
template <UnplugNews how>
void unplug_ended(virConnectPtr, virDomainPtr domain, char const* alias, void* opaque) {
    events_of(opaque).unplug_ended(uuid_of(domain), alias ? alias : "", how);
}

struct Subscription {
    int event;
    virConnectDomainEventGenericCallback callback;
};

// Casts as VIR_DOMAIN_EVENT_CALLBACK() does: libvirt casts back to the type that belongs to the
// event.
template <class Callback>
Subscription subscription(int event, Callback callback) {
    auto const any = reinterpret_cast<void (*)()>(callback);
    return {event, reinterpret_cast<virConnectDomainEventGenericCallback>(any)};
}

}  // namespace

LibvirtEvents::LibvirtEvents(std::function<void()> on_change,
                             std::shared_ptr<DescribedVms> described)
    : on_change_(std::move(on_change)), described_(std::move(described)) {}

void LibvirtEvents::mute() {
    std::lock_guard const lock(on_change_mutex_);
    on_change_ = nullptr;
}

void LibvirtEvents::observe_again() {
    std::lock_guard const lock(on_change_mutex_);
    if (on_change_) on_change_();
}

template <class Matches>
void LibvirtEvents::notify(UnplugNews news, Matches matches) {
    {
        std::lock_guard const lock(mutex_);
        for (auto& waiter : waiters_)
            if (matches(waiter) && waiter.news < news) waiter.news = news;
    }
    changed_.notify_all();
    observe_again();
}

void LibvirtEvents::domain_changed(std::string const& uuid, int lifecycle_event) {
    described_->forget(uuid);
    if (lifecycle_event == VIR_DOMAIN_EVENT_STOPPED || lifecycle_event == VIR_DOMAIN_EVENT_CRASHED)
        notify(UnplugNews::stopped, [&](Waiter const& waiter) { return waiter.uuid == uuid; });
    else
        observe_again();
}

void LibvirtEvents::unplug_ended(std::string const& uuid, std::string const& alias,
                                 UnplugNews how) {
    described_->forget(uuid);
    notify(how, [&](Waiter const& waiter) { return waiter.uuid == uuid && waiter.alias == alias; });
}

void LibvirtEvents::device_added(std::string const& uuid) {
    described_->forget(uuid);
    observe_again();
}

void LibvirtEvents::connection_closed() {
    described_->forget_all();
    notify(UnplugNews::connection_lost, [](Waiter const&) { return true; });
}

LibvirtEvents::Watch::Watch(LibvirtEvents& events, std::string uuid, std::string alias)
    : events_(events) {
    std::lock_guard const lock(events_.mutex_);
    waiter_ =
        events_.waiters_.insert(events_.waiters_.end(), Waiter{std::move(uuid), std::move(alias)});
}

LibvirtEvents::Watch::~Watch() {
    std::lock_guard const lock(events_.mutex_);
    events_.waiters_.erase(waiter_);
}

UnplugNews LibvirtEvents::Watch::next(Deadline deadline) {
    std::unique_lock lock(events_.mutex_);
    events_.changed_.wait_until(lock, deadline,
                                [&] { return waiter_->news != UnplugNews::silence; });
    return std::exchange(waiter_->news, UnplugNews::silence);
}

Result<void> start_libvirt_event_loop() {
    static Result<void> const started = []() -> Result<void> {
        // Errors are returned, never printed: libvirt would write them to stderr by itself.
        virSetErrorFunc(nullptr, [](void*, virErrorPtr) {});
        if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
            return fail(libvirt_error("virEventRegisterDefaultImpl",
                                      "libvirt's event loop can't be started"));
        std::thread([] {
            while (virEventRunDefaultImpl() == 0) {
            }
        }).detach();
        return {};
    }();
    return started;
}

Result<std::vector<int>> subscribe(virConnectPtr connection, Shared const& events) {
    std::array const subscriptions = {
        subscription(VIR_DOMAIN_EVENT_ID_LIFECYCLE, lifecycle),
        subscription(VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, device_added),
        subscription(VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, unplug_ended<UnplugNews::removed>),
        subscription(VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, unplug_ended<UnplugNews::refused>),
    };
    std::vector<int> ids;
    for (auto const& [event, callback] : subscriptions) {
        auto opaque = std::make_unique<Shared>(events);
        int const id = virConnectDomainEventRegisterAny(connection, nullptr, event, callback,
                                                        opaque.get(), release_callback);
        if (id < 0) {
            auto error = libvirt_error("virConnectDomainEventRegisterAny",
                                       "libvirt refused the subscription to events of its VMs");
            unsubscribe(connection, ids);
            return fail(std::move(error));
        }
        // release_callback() deletes it when libvirt drops the registration.
        [[maybe_unused]] auto const* const libvirts = opaque.release();
        ids.push_back(id);
    }
    return ids;
}

void unsubscribe(virConnectPtr connection, std::vector<int> const& ids) {
    for (int const id : ids) (void)virConnectDomainEventDeregisterAny(connection, id);
}

}  // namespace vfmgr

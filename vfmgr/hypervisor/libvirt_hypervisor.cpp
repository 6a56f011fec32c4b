// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include <exception>
#include <set>

#include "vfmgr/hypervisor/libvirt_error.hpp"

namespace vfmgr {

Result<HypervisorView> SharedObservation::ask(Observe const& observe) {
    std::unique_lock lock(mutex_);
    if (!next_) next_ = std::make_shared<Round>();
    auto const round = next_;
    ++round->callers;
    ended_.wait(lock, [&] { return round->found || !observing_; });
    if (round->found) return *round->found;
    if (next_ == round) next_.reset();
    observing_ = true;
    lock.unlock();
    std::exception_ptr bug;
    std::optional<Result<HypervisorView>> found;
    try {
        found = observe();
    } catch (...) {
        bug = std::current_exception();  // the round's other callers observe for themselves
    }
    lock.lock();
    observing_ = false;
    round->found = std::move(found);
    ended_.notify_all();
    if (bug) std::rethrow_exception(bug);
    return *round->found;
}

std::size_t SharedObservation::waiting() const {
    std::lock_guard const lock(mutex_);
    return next_ ? next_->callers : 0;
}

namespace {

constexpr char const* settle_uri = "urn:vfmgr:settle";

// Lists with one call what would otherwise take one for each VM.
Result<std::set<std::string>> uuids_of(virConnectPtr connection, unsigned flags) {
    VFMGR_TRY(auto const domains, list_domains(connection, flags));
    std::set<std::string> uuids;
    for (auto const& domain : domains) uuids.insert(uuid_of(domain.get()));
    return uuids;
}

// libvirt's list contains the id: none is -1.
ListedVm list_entry(virDomainPtr domain, std::set<std::string> const& transient,
                    std::vector<std::string> const& pools) {
    auto uuid = uuid_of(domain);
    auto const id = static_cast<std::int32_t>(virDomainGetID(domain));
    bool const persistent = !transient.contains(uuid);
    return {std::move(uuid), virDomainGetName(domain), id < 0 ? std::nullopt : std::optional(id),
            persistent, pools};
}

Result<HypervisorView> read_all(virConnectPtr connection, DescribedVms& described) {
    VFMGR_TRY(std::vector<std::string> const pools, read_hostdev_pools(connection));
    VFMGR_TRY(auto const domains, list_domains(connection, 0));
    VFMGR_TRY(auto const transient, uuids_of(connection, VIR_CONNECT_LIST_DOMAINS_TRANSIENT));
    VFMGR_TRY(auto const autostart, uuids_of(connection, VIR_CONNECT_LIST_DOMAINS_AUTOSTART));
    HypervisorView view;
    VFMGR_TRY(view.vfio_variants, takes_vfio_variants(connection));
    for (auto const& domain : domains) {
        ListedVm const listed = list_entry(domain.get(), transient, pools);
        auto info = described.find(listed, [&]() -> Result<VmInfo> {
            VFMGR_TRY(auto read, read_domain(domain.get(), listed.persistent, pools));
            return std::move(read.info);
        });
        if (!info && info.error().problem == Problem::not_found) continue;  // gone meanwhile
        if (!info) return fail(std::move(info).error());
        // Only a link in a folder changes with it, not the VM's files.
        info->autostart = autostart.contains(listed.uuid);
        view.vms[listed.uuid] = std::move(*info);
    }
    described.forget_all_but(view.vms);
    return view;
}

Result<HypervisorView> read_one(virConnectPtr connection, std::string const& uuid) {
    HypervisorView view;
    VFMGR_TRY(view.vfio_variants, takes_vfio_variants(connection));
    auto domain = find_domain(connection, uuid);
    if (!domain && domain.error().problem == Problem::not_found) return view;
    if (!domain) return fail(std::move(domain).error());
    VFMGR_TRY(std::vector<std::string> const pools, read_hostdev_pools(connection));
    auto read = describe_domain(domain->get(), pools);
    if (read)
        view.vms[uuid] = std::move(read->info);
    else if (read.error().problem != Problem::not_found)
        return fail(std::move(read).error());
    return view;
}

// Removes nothing from the domain: no element has this namespace. But libvirt does it under the
// domain's job, so the call waits until the job before it has ended; libvirt gives up after 30 s.
Result<void> take_job(virConnectPtr connection, std::string const& uuid) {
    VFMGR_TRY(VirDomain const domain, find_domain(connection, uuid));
    std::string const name = virDomainGetName(domain.get());
    if (virDomainSetMetadata(domain.get(), VIR_DOMAIN_METADATA_ELEMENT, nullptr, nullptr,
                             settle_uri, VIR_DOMAIN_AFFECT_CURRENT) < 0)
        return fail(
            libvirt_error("virDomainSetMetadata",
                          fmt::format("libvirt could not wait for its job on VM {}", name)));
    return {};
}

}  // namespace

LibvirtHypervisor::LibvirtHypervisor(std::string uri, std::function<void()> on_change,
                                     LibvirtTimes times)
    : times_(times),
      described_(std::make_shared<DescribedVms>(folders_of(uri))),
      events_(std::make_shared<LibvirtEvents>(std::move(on_change), described_)),
      session_(std::move(uri), events_) {}

LibvirtHypervisor::~LibvirtHypervisor() {
    events_->mute();
}

Result<HypervisorView> LibvirtHypervisor::observe(HypervisorScope const& scope) {
    if (scope) return describe(scope);
    return every_domain_.ask([&] { return describe(scope); });
}

Result<HypervisorView> LibvirtHypervisor::describe(HypervisorScope const& scope) {
    auto const deadline = std::chrono::steady_clock::now() + times_.observe_max;
    auto const observed_at = std::chrono::system_clock::now();
    auto view = session_.call<HypervisorView>(
        deadline, "describe its VMs", [scope, described = described_](virConnectPtr connection) {
            return scope ? read_one(connection, *scope) : read_all(connection, *described);
        });
    if (!view) {
        // Whatever the reason, the devices of libvirt's VMs are unknown now.
        if (view.error().problem == Problem::timed_out) view.error().problem = Problem::unavailable;
        return view;
    }
    view->observed_at = observed_at;
    return view;
}

Result<Observed> LibvirtHypervisor::perform(HypervisorStep const& step, Deadline deadline) {
    return std::visit([&](auto const& one) { return perform_step(one, deadline); }, step);
}

Result<void> LibvirtHypervisor::settle(std::string const& vm_uuid, Deadline deadline) {
    while (true) {
        auto taken = session_.call<void>(
            deadline, fmt::format("finish its job on VM {}", vm_uuid),
            [vm_uuid](virConnectPtr connection) { return take_job(connection, vm_uuid); });
        if (taken) return {};
        auto& error = taken.error();
        if (error.problem == Problem::not_found) return {};  // nothing can happen to it any more
        bool const busy = is_libvirt_code(error, "VIR_ERR_OPERATION_TIMEOUT");
        if (!busy) return taken;
        error.problem = Problem::timed_out;
        if (std::chrono::steady_clock::now() >= deadline) return taken;
    }
}

Result<LibvirtDomain> LibvirtHypervisor::read(std::string const& uuid, Deadline deadline) {
    return session_.call<LibvirtDomain>(
        deadline, fmt::format("describe VM {}", uuid),
        [uuid](virConnectPtr connection) -> Result<LibvirtDomain> {
            VFMGR_TRY(VirDomain const domain, find_domain(connection, uuid));
            VFMGR_TRY(bool const persistent, is_persistent(domain.get()));
            return read_domain(domain.get(), persistent, {});
        });
}

}  // namespace vfmgr

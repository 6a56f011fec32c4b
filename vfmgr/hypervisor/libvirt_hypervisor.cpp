// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include "vfmgr/hypervisor/libvirt_error.hpp"

namespace vfmgr {
namespace {

constexpr char const* settle_uri = "urn:vfmgr:settle";

// Since 10.0.0 libvirt recognises VFIO by the device; before, by the driver's name
// (LIBVIRT.md#variant-drivers). The daemon's version counts, not the library's.
Result<bool> takes_vfio_variants(virConnectPtr connection) {
    constexpr unsigned long first_version = 10'000'000;
    unsigned long version = 0;
    if (virConnectGetLibVersion(connection, &version) < 0)
        return fail(libvirt_error("virConnectGetLibVersion", "libvirt did not report its version"));
    return version >= first_version;
}

Result<HypervisorView> read_all(virConnectPtr connection) {
    VFMGR_TRY(std::vector<std::string> const pools, read_hostdev_pools(connection));
    virDomainPtr* domains = nullptr;
    int const count = virConnectListAllDomains(connection, &domains, 0);
    if (count < 0)
        return fail(libvirt_error("virConnectListAllDomains", "libvirt did not list its VMs"));
    std::vector<VirDomain> const owned(domains, domains + count);
    VirText const array(reinterpret_cast<char*>(domains));
    HypervisorView view;
    VFMGR_TRY(view.vfio_variants, takes_vfio_variants(connection));
    for (auto const& domain : owned) {
        auto read = read_domain(domain.get(), pools);
        if (!read && read.error().problem == Problem::not_found) continue;  // gone meanwhile
        if (!read) return fail(std::move(read).error());
        view.vms[read->info.uuid] = std::move(read->info);
    }
    return view;
}

Result<HypervisorView> read_one(virConnectPtr connection, std::string const& uuid) {
    HypervisorView view;
    VFMGR_TRY(view.vfio_variants, takes_vfio_variants(connection));
    auto domain = find_domain(connection, uuid);
    if (!domain && domain.error().problem == Problem::not_found) return view;
    if (!domain) return fail(std::move(domain).error());
    VFMGR_TRY(std::vector<std::string> const pools, read_hostdev_pools(connection));
    auto read = read_domain(domain->get(), pools);
    if (read)
        view.vms[uuid] = std::move(read->info);
    else if (read.error().problem != Problem::not_found)
        return fail(std::move(read).error());
    return view;
}

// Takes nothing out of the domain: no element has this namespace. But libvirt does it under the
// domain's job, so it waits for the job before ours; it gives up after 30 s.
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

LibvirtHypervisor::LibvirtHypervisor(std::string uri, std::function<void()> on_change)
    : LibvirtHypervisor(std::move(uri), std::move(on_change), Times{}) {}

LibvirtHypervisor::LibvirtHypervisor(std::string uri, std::function<void()> on_change, Times times)
    : times_(times),
      events_(std::make_shared<LibvirtEvents>(std::move(on_change))),
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
        deadline, "describe its VMs", [scope](virConnectPtr connection) {
            return scope ? read_one(connection, *scope) : read_all(connection);
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
    return session_.call<LibvirtDomain>(deadline, fmt::format("describe VM {}", uuid),
                                        [uuid](virConnectPtr connection) -> Result<LibvirtDomain> {
                                            VFMGR_TRY(VirDomain const domain,
                                                      find_domain(connection, uuid));
                                            return read_domain(domain.get(), {});
                                        });
}

}  // namespace vfmgr

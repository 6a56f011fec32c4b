// SPDX-License-Identifier: Apache-2.0
#include "service/guest_answers.hpp"

#include <fmt/format.h>

#include "api/os/random.hpp"
#include "service/auth/authenticate.hpp"
#include "service/guest/access.hpp"
#include "service/guest/identity.hpp"
#include "service/log.hpp"
#include "vfmgr/checks/host/topology_for_vm.hpp"
#include "vfmgr/machine/places.hpp"

namespace vfmgr {
namespace {

// For a run that a guest started and may never report.
constexpr std::chrono::minutes guest_run_time_max{10};

// A guest renews its key in the second half of this time.
constexpr std::chrono::hours guest_key_time{24 * 30};

Result<void> confirm_attached(Snapshot const& now, std::string const& id) {
    if (attachment_to_enrol(*now.desired, id)) return {};
    return fail(Problem::not_found, fmt::format("attachment {} has ended", id),
                "ask the host's admin to attach the VF again");
}

// The UUID of the VM that a guest is in; empty: libvirt does not know it.
std::string vm_of_guest(Snapshot const& now, std::string const& guest) {
    auto const id = attachment_of_guest(guest);
    auto const found = now.desired->attachments.find(id);
    if (id.empty() || found == now.desired->attachments.end()) return guest;
    return found->second.vm_uuid;
}

// Reports each change once.
auto reporter() {
    return [last = std::string("?")](Result<void> const& connected) mutable {
        auto const now = connected ? std::string() : connected.error().detail;
        if (std::exchange(last, now) == now) return;
        if (connected) return log(Severity::notice, "VMs are served by vfmgr-guestd");
        log(Severity::warning, now, {{"remedy", connected.error().remedy}});
    };
}

}  // namespace

guestd::FrontHooks guest_answers(Answering const& answering) {
    guestd::FrontHooks hooks;
    hooks.vms = [answering]() -> GuestVms {
        auto const rung_at = answering.bell.vms_rung_at();
        auto const now = answering.engine.snapshot();
        auto const& published = now.host->hypervisor;
        return {guest_vms(now), !published.stale && published.observed_at > rung_at};
    };
    hooks.identify = [answering](std::uint32_t cid) {
        auto const host = answering.engine.snapshot().host;
        return identify_vm({host->hypervisor, answering.bell.vms_rung_at()}, answering.hypervisor,
                           cid);
    };
    hooks.confirm = [answering](VmIdentity const& vm, std::uint32_t cid) -> Result<void> {
        auto const id = attachment_of_guest(vm.uuid);
        if (!id.empty()) return confirm_attached(answering.engine.snapshot(), id);
        return confirm_vm(answering.hypervisor, vm, cid);
    };
    hooks.topology = [answering](VmIdentity const& vm) -> Result<HostTopology> {
        auto const host = answering.engine.snapshot().host;
        auto const* const info = find_vm(*host, vm_of_guest(answering.engine.snapshot(), vm.uuid));
        if (!info) return HostTopology{};
        std::vector<PciAddress> functions;
        for (auto const& hostdev : info->live) functions.push_back(hostdev.pci);
        auto const facts = checks::collect_places({}, functions);
        return checks::topology_for_vm(checks::read_machine(facts), info->live);
    };
    hooks.start_run = [answering](VmIdentity const& vm, RunTicket const& ticket) -> Result<void> {
        auto const now = answering.clock.now();
        return answering.engine.runs().begin_run(
            ticket.attachment, vm.uuid,
            {ticket.run, ticket.nonce, now, now + guest_run_time_max, ticket.profile, {}});
    };
    hooks.enrol = [answering](VmIdentity const& vm, std::string const& secret) -> Result<GuestKey> {
        GuestKey const made{random_hex(32), answering.clock.now() + guest_key_time};
        VFMGR_CHECK(answering.engine.enrol(attachment_of_guest(vm.uuid), token_sha256(secret),
                                           {token_sha256(made.key), made.expires_at}));
        return made;
    };
    hooks.verdict = [answering](Verification& verification) {
        explain_failure(answering.engine.snapshot(), verification);
        log(Severity::info, "verification",
            {{"attachment", verification.attachment},
             {"verdict", std::string(enum_name(verification.verdict))}});
        answering.engine.runs().verification_done(verification);
    };
    hooks.report = reporter();
    return hooks;
}

}  // namespace vfmgr

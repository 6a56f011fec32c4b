// SPDX-License-Identifier: Apache-2.0
#include "service/guest_answers.hpp"

#include "service/guest/access.hpp"
#include "service/guest/identity.hpp"
#include "service/log.hpp"
#include "vfmgr/checks/host/topology_for_vm.hpp"
#include "vfmgr/machine/places.hpp"

namespace vfmgr {
namespace {

// For a run that a guest started and may never report.
constexpr std::chrono::minutes guest_run_time_max{10};

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
    hooks.confirm = [answering](VmIdentity const& vm, std::uint32_t cid) {
        return confirm_vm(answering.hypervisor, vm, cid);
    };
    hooks.topology = [answering](VmIdentity const& vm) -> Result<HostTopology> {
        auto const host = answering.engine.snapshot().host;
        auto const* const info = find_vm(*host, vm.uuid);
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

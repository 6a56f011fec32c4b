// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/stored.hpp"
#include "vfmgr/plan/released.hpp"

#include <algorithm>

namespace vfmgr {

Engine::Engine(Kernel& kernel, Hypervisor& hypervisor, std::unique_ptr<Control> control,
               Clock& clock, AskResponder ask_responder, TrustedNetdevs trusted_netdevs,
               FindOwners find_owners, HostBounds bounds)
    : control_(std::move(control)),
      operations_(kernel, hypervisor, *control_, clock,
                  {[this] { observer_.observe_again(); },
                   [this](Operation& operation, std::string const& exception) {
                       recovery_.recover_from(operation, exception);
                   }},
                  std::move(bounds)),
      runs_(operations_),
      attachments_(operations_, runs_, std::move(ask_responder),
                   [this](auto const& command, auto const& who) { submit_own(command, who); }),
      pfs_(operations_, attachments_),
      repairs_(
          operations_, [this](auto const& command, auto const& who) { submit_own(command, who); },
          std::move(find_owners)),
      endings_(operations_,
               [this](Detach command, Reply reply) {
                   submit(std::move(command), Intent{false, "daemon", {}, {}, {}},
                          std::move(reply));
               }),
      declarations_(operations_,
                    [this](Attach command, std::string const& vm, Reply reply) {
                        submit_for(vm, std::move(command), principal_of_metadata(vm),
                                   std::move(reply));
                    }),
      links_(operations_, repairs_, std::move(trusted_netdevs)),
      documents_(operations_, links_.trusted_netdevs()),
      recovery_(operations_, attachments_),
      observer_(operations_, [this] { judge_observed(); }) {}

Engine::~Engine() {
    stop_waiting();
    observer_.join();
    control_->finish_offers();  // every command has had its reply
    operations_.join();
    control_.reset();
}

void Engine::stop_waiting() {
    operations_.stop_waiting();
    observer_.stop();
    runs_.stop_schedule();
    control_->expire_watches();
}

Result<void> Engine::recover(Recovered const& ended) {
    VFMGR_TRY(bool const observed_already, recovery_.recover(ended));
    if (observed_already) observer_.observed_already();
    return {};
}

void Engine::judge_observed() {
    auto observed = repairs_.observe_drift();
    // Reports losses first: reading files would delay what matters most.
    if (std::ranges::any_of(observed.drift, is_loss))
        control_->post([this, losses = observed.losses()](Control::State& state) {
            repairs_.report_drift(state, losses);
        });
    repairs_.name_owners(observed);
    control_->post([this, observed = std::move(observed)](Control::State& state) {
        pfs_.learn_identities(state);
        links_.repair_links(state);
        repairs_.report_drift(state, observed);
        repairs_.repair_drift(state, observed);
        endings_.end_unheld(state, observed.judged_attachments);
        declarations_.attach_declared(state);
    });
}

void Engine::submit_own(Verify const& command, std::string const& requested_by) {
    // Runs that repeat themselves take from the quota of the VM's tenant like those it requests.
    auto const desired = control_->snapshot().desired;
    auto const of = desired->attachments.find(command.attachment);
    submit_for(of == desired->attachments.end() ? "" : of->second.vm_uuid, command, requested_by,
               [](Result<Answer> const&) {});
}

void Engine::submit_for(std::string const& vm_uuid, Command command,
                        std::string const& requested_by, Reply reply) {
    Intent intent{false, requested_by, {}, {}, {}};
    auto const desired = control_->snapshot().desired;
    if (auto const* const tenant = tenant_of(desired->tenants, vm_uuid))
        intent.tenant = tenant->name;
    submit(std::move(command), std::move(intent), std::move(reply));
}

Result<EventPage> Engine::on_events(std::function<void(std::vector<Event> const&)> emit,
                                    std::size_t recent) {
    return control_->wait([&](Control::State& state) -> Result<EventPage> {
        state.emit = std::move(emit);
        VFMGR_TRY(auto const last, state.store.last_event());
        return state.store.events_after(last - std::min<std::uint64_t>(last, recent), recent);
    });
}

void Engine::start_observing() {
    control_->record_host();
    observer_.start();
}

void Engine::on_operation(std::function<void(Operation const&)> emit) {
    control_->wait([&](Control::State& state) { return (state.ended = std::move(emit), true); });
}

void Engine::end_expired() {
    control_->post([this](Control::State& state) {
        tidy_reservations(state, operations_.seams().clock.now());
    });
}

void Engine::prune() {
    control_->post([this](Control::State& state) {
        static_cast<void>(state.store.prune(operations_.seams().clock.now()).has_value());
    });
}

void Engine::try_store_again() {
    control_->post([](Control::State& state) {
        if (state.store.refusal()) state.store.try_again();
    });
}

}  // namespace vfmgr

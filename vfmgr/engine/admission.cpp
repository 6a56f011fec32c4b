// SPDX-License-Identifier: Apache-2.0
// Admission, on the control thread, against the published view. It refuses what can be refused
// before anything is begun and answers dry runs. The operation plans again under its claims, from a
// fresh view.
#include <fmt/format.h>

#include "api/os/random.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/exception_of.hpp"
#include "vfmgr/engine/firmware.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/plan/firmware.hpp"
#include "vfmgr/plan/gone.hpp"
#include "vfmgr/plan/schedule.hpp"

namespace vfmgr {
namespace {

Operation new_operation(OperationKind kind, std::string subject, Intent const& intent, Time now) {
    Operation operation;
    operation.id = random_hex(8);
    operation.kind = kind;
    operation.subject = std::move(subject);
    operation.requested_by = intent.requested_by;
    operation.request_id = intent.request_id;
    operation.created_at = now;
    return operation;
}

PlaceRequest const detaching{PlaceRequest::Work::detaches, {}};

Error no_attachment(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no attachment {}", id),
            "vfctl attachment list shows those of this host"};
}

template <class Key, class Value>
std::uint64_t revision_of(std::map<Key, Value> const& all, Key const& key) {
    auto const now = all.find(key);
    return now == all.end() ? 0 : now->second.revision;
}

// A PF with attachments or quarantines is not removed: cleaning them needs its stored state.
Result<void> check_unlent(DesiredState const& desired, PciAddress const& pf) {
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf)
            return fail(Problem::conflict,
                        fmt::format("VF {} is attached to {} (attachment {})",
                                    to_string(attachment.vf), attachment.vm, id),
                        fmt::format("detach it first: vfctl detach {}", id));
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (vf.pf == pf)
            return fail(Problem::conflict,
                        fmt::format("VF {}, last attached to {}, is in quarantine", to_string(vf),
                                    quarantine.attachment.vm),
                        fmt::format("clean it first: vfctl vf lift-quarantine {} {}", to_string(pf),
                                    vf.index));
    return {};
}

}  // namespace

void Engine::submit(Command command, Intent intent, Reply reply) {
    auto const client = intent.requested_by;
    auto admitting = [this, command = std::move(command), intent = std::move(intent),
                      reply](Control::State& state) {
        auto answer = admit(state, command, intent);
        auto const again = [this, command, intent, reply](Control::State& later) {
            reply(admit(later, command, intent));
        };
        if (!answer && after_observing(intent.requested_by, again)) return;
        reply(std::move(answer));
    };
    if (auto taken = control_->offer(client, std::move(admitting)); !taken)
        reply(fail(std::move(taken.error())));
}

Result<Answer> Engine::admit(Control::State& state, Command const& command, Intent const& intent) {
    Result<Answer> answer;
    if (auto const what = exception_of([&] { answer = admit_known(state, command, intent); })) {
        control_->report_bug("an exception ended a request: " + *what);
        return fail(Problem::internal, "an exception ended the request: " + *what,
                    "report this with the daemon's log");
    }
    return answer;
}

Result<Answer> Engine::admit_known(Control::State& state, Command const& command,
                                   Intent const& intent) {
    if (!intent.idempotency_key.empty() && !intent.dry_run) {
        VFMGR_TRY(auto const observed,
                  state.store.idempotency(intent.idempotency_key, clock_.now()));
        if (observed && observed->request_hash != intent.request_hash)
            return fail(Problem::conflict, "this Idempotency-Key was used for another request",
                        "use a new key for a new request");
        if (observed) {
            VFMGR_TRY(auto operation, state.store.operation(observed->operation));
            if (operation) return Answer{std::move(operation), {}, {}, 0};
        }
    }
    VFMGR_CHECK(check_recovered(command));
    return std::visit([&](auto const& one) { return admit_one(state, one, intent); }, command);
}

Result<Answer> Engine::accept(Control::State& state, Operation operation, Intent const& intent,
                              Work work, PlaceRequest const& place) {
    VFMGR_CHECK(places_.enter(operation.id, place));
    Batch batch;
    batch.save_operations.push_back(operation);
    if (!intent.idempotency_key.empty())
        batch.save_idempotency.push_back(
            {intent.idempotency_key, intent.request_hash, operation.id, clock_.now()});
    if (auto const written = state.commit(std::move(batch)); !written) {
        places_.leave(operation.id);
        return fail(written.error());
    }
    if (auto const launched = launch(operation, std::move(work)); !launched) {
        places_.leave(operation.id);
        // The operation is recorded already, with its Idempotency-Key, so it records why it failed.
        operation.state = OperationState::failed;
        operation.problem = launched.error();
        operation.finished_at = clock_.now();
        Batch end;
        end.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(std::move(end)));
    }
    return Answer{std::move(operation), {}, {}, 0};
}

Result<Answer> Engine::admit_one(Control::State& state, ReplacePfSpec const& command,
                                 Intent const& intent) {
    VFMGR_CHECK(check_revision(state.desired(), command.pf, intent.if_match));
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_pf(*host, state.desired(), command.pf, command.spec));
    if (intent.dry_run)
        return Answer{{}, std::move(plan), {}, revision_of(state.desired().pfs, command.pf)};
    auto const now = state.desired().pfs.find(command.pf);
    bool const same = now != state.desired().pfs.end() && now->second.spec == command.spec;
    if (same && plan.steps.empty()) return Answer{{}, {}, {}, now->second.revision};
    auto operation = new_operation(OperationKind::configure_pf, "/v1/pfs/" + to_string(command.pf),
                                   intent, clock_.now());
    operation.steps = planned_steps(plan);
    return accept(state, std::move(operation), intent,
                  [this, command, if_match = intent.if_match](Operation& running) {
                      configure_pf(running, command, if_match);
                  });
}

Result<Answer> Engine::admit_one(Control::State& state, ForgetPf const& command,
                                 Intent const& intent) {
    VFMGR_CHECK(check_revision(state.desired(), command.pf, intent.if_match));
    if (!state.desired().pfs.contains(command.pf))
        return fail(Problem::not_found, fmt::format("{} is not managed", to_string(command.pf)),
                    "no action is needed");
    VFMGR_CHECK(check_unlent(state.desired(), command.pf));
    if (intent.dry_run) return Answer{{}, Plan{}, {}, 0};
    auto operation = new_operation(OperationKind::configure_pf, "/v1/pfs/" + to_string(command.pf),
                                   intent, clock_.now());
    return accept(state, std::move(operation), intent,
                  [this, pf = command.pf, if_match = intent.if_match](Operation& running) {
                      forget_pf(running, pf, if_match);
                  });
}

void Engine::forget_pf(Operation& operation, PciAddress const& pf,
                       std::optional<std::uint64_t> if_match) {
    auto const claim = claims_.take({"pf " + to_string(pf)});
    auto const desired = control_->snapshot().desired;
    auto outcome = check_revision(*desired, pf, if_match);
    if (outcome) outcome = check_unlent(*desired, pf);
    Batch batch;
    if (outcome) batch.erase_pfs.push_back(pf);
    finish(operation, outcome, std::move(batch));
}

Result<Answer> Engine::admit_one(Control::State& state, Attach const& command,
                                 Intent const& intent) {
    VFMGR_TRY(std::string const seed, state.store.host_seed());
    auto const host = control_->snapshot().host;
    auto const id = random_hex(4);
    VFMGR_TRY(AttachmentPlan planned,
              plan_attachment(*host, state.desired(), id, command.spec, seed));
    if (intent.dry_run)
        return Answer{{}, std::move(planned.plan), std::move(planned.attachment), 0};
    auto operation =
        new_operation(OperationKind::attach, "/v1/attachments/" + id, intent, clock_.now());
    operation.steps = planned_steps(planned.plan);
    PlaceRequest place;
    if (command.spec.verify == VerifyMode::required) place.vm = planned.attachment.vm_uuid;
    return accept(
        state, std::move(operation), intent,
        [this, id, spec = command.spec](Operation& running) { attach(running, id, spec); }, place);
}

Result<Answer> Engine::admit_one(Control::State& state, Detach const& command,
                                 Intent const& intent) {
    auto const attachment = state.desired().attachments.find(command.attachment);
    if (attachment == state.desired().attachments.end())
        return fail(no_attachment(command.attachment));
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_detach(*host, state.desired(), attachment->second));
    if (intent.dry_run) return Answer{{}, std::move(plan), attachment->second, 0};
    auto operation = new_operation(OperationKind::detach, "/v1/attachments/" + command.attachment,
                                   intent, clock_.now());
    operation.steps = planned_steps(plan);
    return accept(
        state, std::move(operation), intent,
        [this, id = command.attachment](Operation& running) { detach(running, id); }, detaching);
}

Result<Answer> Engine::admit_one(Control::State& state, LiftQuarantine const& command,
                                 Intent const& intent) {
    auto const quarantine = state.desired().quarantine.find(command.vf);
    if (quarantine == state.desired().quarantine.end())
        return fail(Problem::not_found,
                    fmt::format("VF {} is not in quarantine", to_string(command.vf)),
                    "no action is needed");
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_detach(*host, state.desired(), quarantine->second.attachment));
    if (intent.dry_run) return Answer{{}, std::move(plan), {}, 0};
    auto operation =
        new_operation(OperationKind::detach,
                      fmt::format("/v1/pfs/{}/vfs/{}", to_string(command.vf.pf), command.vf.index),
                      intent, clock_.now());
    operation.steps = planned_steps(plan);
    return accept(
        state, std::move(operation), intent,
        [this, vf = command.vf](Operation& running) { lift(running, vf); }, detaching);
}

// Counts a request with nothing to set as a try, too: a client may request at every boot what never
// holds.
Result<Answer> Engine::admit_one(Control::State& state, ChangeFirmware const& command,
                                 Intent const& intent) {
    auto const& card = command.card;
    auto const host = control_->snapshot().host;
    VFMGR_TRY(auto planned, plan_firmware(*host, state.desired(), card, command.settings));
    if (intent.dry_run) return Answer{{}, std::move(planned.plan), {}, 0};
    if (planned.plan.steps.empty()) {
        VFMGR_CHECK(state.commit(remembering(state.desired(), card, std::move(planned.tries))));
        return Answer{};
    }
    auto operation =
        new_operation(OperationKind::configure_firmware,
                      "/v1/pfs/" + to_string(card.pci) + "/firmware", intent, clock_.now());
    operation.steps = planned_steps(planned.plan);
    return accept(state, std::move(operation), intent,
                  [this, command](Operation& running) { configure_firmware(running, command); });
}

Result<Answer> Engine::admit_one(Control::State& state, AddLink const& command,
                                 Intent const& intent) {
    auto const& link = command.link;
    auto const& links = state.desired().rdma_links;
    VFMGR_CHECK(check_revision(state.desired(), link.name, intent.if_match));
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_rdma_link(*host, state.desired(), trusted_netdevs_, link));
    if (intent.dry_run) return Answer{{}, std::move(plan), {}, revision_of(links, link.name)};
    auto const now = links.find(link.name);
    if (now != links.end() && plan.steps.empty()) return Answer{{}, {}, {}, now->second.revision};
    auto operation = new_operation(OperationKind::add_rdma_link, "/v1/rdma-links/" + link.name,
                                   intent, clock_.now());
    operation.steps = planned_steps(plan);
    return accept(state, std::move(operation), intent,
                  [this, link, if_match = intent.if_match](Operation& running) {
                      add_link(running, link, if_match);
                  });
}

Result<Answer> Engine::admit_one(Control::State& state, RemoveLink const& command,
                                 Intent const& intent) {
    auto const& what = command.what;
    VFMGR_CHECK(check_revision(state.desired(), what.name, intent.if_match));
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_rdma_link_removal(*host, state.desired(), what));
    if (intent.dry_run) return Answer{{}, std::move(plan), {}, 0};
    auto operation = new_operation(OperationKind::remove_rdma_link, "/v1/rdma-links/" + what.name,
                                   intent, clock_.now());
    operation.steps = planned_steps(plan);
    return accept(state, std::move(operation), intent,
                  [this, what, if_match = intent.if_match](Operation& running) {
                      remove_link(running, what, if_match);
                  });
}

Result<Answer> Engine::admit_one(Control::State& state, EndGonePf const& command,
                                 Intent const& intent) {
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_gone(*host, state.desired(), command.pf));
    if (intent.dry_run) return Answer{{}, std::move(plan), {}, 0};
    auto operation = new_operation(OperationKind::end_gone_pf, "/v1/pfs/" + to_string(command.pf),
                                   intent, clock_.now());
    operation.steps = planned_steps(plan);
    return accept(state, std::move(operation), intent,
                  [this, pf = command.pf](Operation& running) { end_gone(running, pf); });
}

Result<Answer> Engine::admit_one(Control::State& state, ConfirmGonePf const& command,
                                 Intent const& intent) {
    auto const host = control_->snapshot().host;
    VFMGR_TRY(Plan plan, plan_gone_confirmed(*host, state.desired(), command.pf));
    if (intent.dry_run) return Answer{{}, std::move(plan), {}, 0};
    auto operation = new_operation(OperationKind::confirm_gone_pf,
                                   "/v1/pfs/" + to_string(command.pf), intent, clock_.now());
    return accept(state, std::move(operation), intent,
                  [this, pf = command.pf](Operation& running) { confirm_gone(running, pf); });
}

Result<Answer> Engine::admit_one(Control::State& state, RekeyPf const& command,
                                 Intent const& intent) {
    auto const host = control_->snapshot().host;
    VFMGR_TRY(RekeyPlan rekeying, plan_rekey(*host, state.desired(), command.from, command.to));
    if (intent.dry_run) return Answer{{}, std::move(rekeying.plan), {}, 0};
    auto operation = new_operation(OperationKind::rekey_pf, "/v1/pfs/" + to_string(command.from),
                                   intent, clock_.now());
    operation.steps = planned_steps(rekeying.plan);
    return accept(state, std::move(operation), intent,
                  [this, command](Operation& running) { rekey(running, command); });
}

Result<Answer> Engine::admit_one(Control::State& state, Verify const& command,
                                 Intent const& intent) {
    auto const attachment = state.desired().attachments.find(command.attachment);
    if (attachment == state.desired().attachments.end())
        return fail(no_attachment(command.attachment));
    if (!attachment->second.address)
        return fail(Problem::unsupported,
                    fmt::format("attachment {} has no network, so nothing can be verified over it",
                                command.attachment),
                    "detach the VF and attach it again with a network");
    auto const host = control_->snapshot().host;
    auto const* const pf = find_pf(*host, attachment->second.vf.pf);
    if (auto never = pf ? verification_hindrance(pf->info) : std::nullopt)
        return fail(Problem::unsupported, std::move(never->detail), std::move(never->remedy));
    if (attachment->second.state != AttachmentState::attached)
        return fail(Problem::conflict,
                    fmt::format("attachment {} is {}", command.attachment,
                                enum_name(attachment->second.state)),
                    "wait until it is attached");
    if (intent.dry_run) return Answer{{}, Plan{}, attachment->second, 0};
    auto operation = new_operation(OperationKind::verify, "/v1/attachments/" + command.attachment,
                                   intent, clock_.now());
    operation.steps.push_back(
        {sentence(AwaitVerification{command.attachment, command.timeout_seconds}), {}});
    return accept(state, std::move(operation), intent,
                  [this, command](Operation& running) { verify(running, command); },
                  {PlaceRequest::Work::none, attachment->second.vm_uuid});
}

}  // namespace vfmgr

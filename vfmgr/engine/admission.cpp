// SPDX-License-Identifier: Apache-2.0
// Admission, on the control thread, against the published view. It refuses what can be refused
// before anything is begun and answers dry runs. The operation plans again under its claims, from a
// fresh view.
#include <fmt/format.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/execute.hpp"
#include "vfmgr/engine/fleet.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/stored.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/firmware.hpp"
#include "vfmgr/plan/guest_topology.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/schedule.hpp"

namespace vfmgr {
namespace {

// What restores a state is not held to the bounds: root may have narrowed them since.
bool restores(OperationKind kind) {
    return kind == OperationKind::detach || kind == OperationKind::end_gone_pf;
}

// An operation on several attachments has their list as its subject, and their ids beside it.
std::string subject_of(std::vector<std::string> const& attachments) {
    return attachments.size() == 1 ? attachment_subject(attachments.front()) : "/v1/attachments";
}

void append(Plan& plan, Plan more) {
    std::ranges::move(more.steps, std::back_inserter(plan.steps));
    std::ranges::move(more.blast_radius, std::back_inserter(plan.blast_radius));
    std::ranges::move(more.notes, std::back_inserter(plan.notes));
}

PlaceRequest const detaching{PlaceRequest::Work::detaches, {}};

// The work of an operation: it calls a method of one of the engine's parts.
template <class Part, class... Parameters, class... Arguments>
Operations::Work calling(Part& part, void (Part::*method)(Operation&, Parameters...),
                         Arguments... arguments) {
    return [&part, method, arguments...](Operation& running) {
        (part.*method)(running, arguments...);
    };
}

}  // namespace

// What a command amounts to: decided once for dry run, planned steps and acceptance.
struct Engine::Admission {
    OperationKind kind = OperationKind::configure_pf;
    std::string subject;
    Plan plan;
    Operations::Work work{};  // empty: nothing is to be done
    PlaceRequest place{};
    std::vector<Attachment> attachments{};  // that it is about; shown by a dry run
    std::uint64_t revision = 0;             // of the command's subject; 0: it has none
    std::optional<Batch> stored{};          // stored at once, by a command without steps
    std::vector<DesiredChange> changes{};   // shown by a dry run
};

// Makes the admission of each command.
struct Engine::Admitting {
    Engine& engine;
    Control::State& state;
    HostView const& host;
    Intent const& intent;
    IfMatch const& if_match = intent.if_match;

    Result<Admission> operator()(ReplacePfSpec const& command) const {
        auto const& pfs = state.desired().pfs;
        VFMGR_CHECK(check_revision(state.desired().pfs, command.pf, if_match));
        VFMGR_TRY(Plan plan, plan_pf(host, state.desired(), command.pf, command.spec));
        auto const now = pfs.find(command.pf);
        bool const same =
            now != pfs.end() && now->second.spec == command.spec && plan.steps.empty();
        Admission admission{OperationKind::configure_pf, subject_of(command.pf), std::move(plan)};
        admission.revision = revision_of(pfs, command.pf);
        if (!same) admission.work = calling(engine.pfs_, &Pfs::configure_pf, command, if_match);
        return admission;
    }

    Result<Admission> operator()(ForgetPf const& command) const {
        VFMGR_CHECK(check_revision(state.desired().pfs, command.pf, if_match));
        if (!state.desired().pfs.contains(command.pf))
            return fail(Problem::not_found, fmt::format("{} is not managed", to_string(command.pf)),
                        "no action is needed");
        VFMGR_CHECK(check_unused(state.desired(), command.pf));
        return Admission{OperationKind::configure_pf,
                         subject_of(command.pf),
                         {},
                         calling(engine.pfs_, &Pfs::forget_pf, command.pf, if_match)};
    }

    // Commands that only store something.
    template <class Command>
        requires std::invocable<Storing const&, Command const&>
    Result<Admission> operator()(Command const& command) const {
        VFMGR_TRY(auto storing,
                  (Storing{state, host, intent, engine.operations_.seams().clock.now()}(command)));
        Admission admission;
        admission.plan = std::move(storing.plan);
        admission.revision = storing.revision;
        admission.stored = std::move(storing.batch);
        return admission;
    }

    Result<Admission> operator()(Attach const& command) const {
        auto const& specs = command.specs;
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        std::vector<std::string> ids(specs.size());
        std::ranges::transform(specs, ids.begin(), [&](AttachmentSpec const& spec) {
            return id_of_adopted(host, state.desired(), spec).value_or(random_hex(4));
        });
        VFMGR_TRY(auto planned, plan_attachments(host, state.desired(), ids, specs, seed));
        Admission admission{
            OperationKind::attach, subject_of(ids), std::move(planned.plan),
            calling(engine.attachments_, &Attachments::attach, ids, specs, intent.tenant)};
        for (auto const& one : planned.attachments)
            if (one.spec.verify == VerifyMode::required) admission.place.vm = one.vm_uuid;
        admission.attachments = std::move(planned.attachments);
        return admission;
    }

    Result<Admission> operator()(ChangeAttachment const& command) const {
        auto const& id = command.attachment;
        auto const attachment = state.desired().attachments.find(id);
        if (attachment == state.desired().attachments.end()) return fail(no_attachment(id));
        auto const revision = revision_of(attachment->second, intent.tenant);
        VFMGR_CHECK(check_revision(revision, "attachment " + id, if_match));
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        VFMGR_TRY(AttachmentPlan planned,
                  plan_change(host, state.desired(), attachment->second, command.patch, seed));
        bool const same = planned.attachment == attachment->second;
        Admission admission{OperationKind::change_attachment, attachment_subject(id),
                            std::move(planned.plan)};
        admission.revision = revision;
        if (!same)
            admission.work = calling(engine.attachments_, &Attachments::change, command, if_match,
                                     intent.tenant);
        if (command.patch.verify == VerifyMode::required)
            admission.place.vm = planned.attachment.vm_uuid;
        admission.attachments.push_back(std::move(planned.attachment));
        return admission;
    }

    Result<Admission> operator()(Detach const& command) const {
        auto const& ids = command.attachments;
        Admission admission{OperationKind::detach,
                            subject_of(ids),
                            {},
                            calling(engine.attachments_, &Attachments::detach, ids),
                            detaching};
        for (auto const& id : ids) {
            auto const attachment = state.desired().attachments.find(id);
            if (attachment == state.desired().attachments.end()) return fail(no_attachment(id));
            VFMGR_TRY(Plan plan, plan_detach(host, state.desired(), attachment->second));
            append(admission.plan, std::move(plan));
            admission.attachments.push_back(attachment->second);
        }
        return admission;
    }

    Result<Admission> operator()(LiftQuarantine const& command) const {
        auto const quarantine = state.desired().quarantine.find(command.vf);
        if (quarantine == state.desired().quarantine.end())
            return fail(Problem::not_found,
                        fmt::format("VF {} is not in quarantine", to_string(command.vf)),
                        "no action is needed");
        VFMGR_TRY(Plan plan, plan_detach(host, state.desired(), quarantine->second.attachment));
        return Admission{OperationKind::detach,
                         fmt::format("{}/vfs/{}", subject_of(command.vf.pf), command.vf.index),
                         std::move(plan),
                         calling(engine.attachments_, &Attachments::lift, command.vf), detaching};
    }

    // Counts a request with nothing to set as a try, too: a client may request at every boot what
    // never holds.
    Result<Admission> operator()(ChangeFirmware const& command) const {
        auto const& card = command.card;
        VFMGR_TRY(auto planned, plan_firmware(host, state.desired(), card, command.settings));
        Admission admission{OperationKind::configure_firmware, subject_of(card.pci) + "/firmware",
                            std::move(planned.plan)};
        if (admission.plan.steps.empty())
            admission.stored = remembering(state.desired(), card, std::move(planned.tries));
        else
            admission.work = calling(engine.pfs_, &Pfs::configure_firmware, command);
        return admission;
    }

    Result<Admission> operator()(AddLink const& command) const {
        auto const& link = command.link;
        auto const& links = state.desired().rdma_links;
        VFMGR_CHECK(check_revision(state.desired().rdma_links, link.name, if_match));
        VFMGR_TRY(Plan plan,
                  plan_rdma_link(host, state.desired(), engine.links_.trusted_netdevs(), link));
        bool const same = links.contains(link.name) && plan.steps.empty();
        Admission admission{OperationKind::add_rdma_link, "/v1/rdma-links/" + link.name,
                            std::move(plan)};
        admission.revision = revision_of(links, link.name);
        if (!same) admission.work = calling(engine.links_, &Links::add_link, link, if_match);
        return admission;
    }

    Result<Admission> operator()(RemoveLink const& command) const {
        auto const& what = command.what;
        VFMGR_CHECK(check_revision(state.desired().rdma_links, what.name, if_match));
        VFMGR_TRY(Plan plan, plan_rdma_link_removal(host, state.desired(), what));
        return Admission{OperationKind::remove_rdma_link, "/v1/rdma-links/" + what.name,
                         std::move(plan),
                         calling(engine.links_, &Links::remove_link, what, if_match)};
    }

    Result<Admission> operator()(PlaceInVm const& command) const {
        VFMGR_TRY(Plan plan, plan_placing(host, command.vm, command.back));
        auto const& uuid = find_vm(host, command.vm)->uuid;
        Admission admission{OperationKind::place_hostdevs, "/v1/vms/" + uuid, std::move(plan)};
        if (!admission.plan.steps.empty())
            admission.work = calling(engine.attachments_, &Attachments::place_hostdevs,
                                     PlaceInVm{uuid, command.back});
        return admission;
    }

    Result<Admission> operator()(EndGonePf const& command) const {
        VFMGR_TRY(Plan plan, plan_gone(host, state.desired(), command.pf));
        return Admission{OperationKind::end_gone_pf, subject_of(command.pf), std::move(plan),
                         calling(engine.pfs_, &Pfs::end_gone, command.pf)};
    }

    Result<Admission> operator()(ConfirmGonePf const& command) const {
        VFMGR_TRY(Plan plan, plan_gone_confirmed(host, state.desired(), command.pf));
        return Admission{OperationKind::confirm_gone_pf, subject_of(command.pf), std::move(plan),
                         calling(engine.pfs_, &Pfs::confirm_gone, command.pf)};
    }

    Result<Admission> operator()(RekeyPf const& command) const {
        VFMGR_TRY(RekeyPlan rekeying, plan_rekey(host, state.desired(), command.from, command.to));
        return Admission{OperationKind::rekey_pf, subject_of(command.from),
                         std::move(rekeying.plan), calling(engine.pfs_, &Pfs::rekey, command)};
    }

    Result<Admission> operator()(ReplaceDesired const& command) const {
        auto const& desired = state.desired();
        auto const revision = revision_of(document_of(desired));
        VFMGR_CHECK(check_revision(revision, "the desired state", if_match));
        VFMGR_TRY(auto planned, plan_desired(host, desired, engine.links_.trusted_netdevs(),
                                             command.document, command.unnamed));
        Admission admission;
        admission.kind = OperationKind::apply;
        admission.subject = "/v1/desired";
        admission.revision = revision;
        if (changes_host(desired, planned))
            admission.work = calling(engine.documents_, &Documents::apply, command, if_match);
        else if (!planned.changes.empty())
            add_unclaimed(admission.stored.emplace(), desired, planned.after,
                          state.next_revision());
        admission.plan = std::move(planned.plan);
        admission.changes = std::move(planned.changes);
        return admission;
    }

    Result<Admission> operator()(Verify const& command) const {
        auto const attachment = state.desired().attachments.find(command.attachment);
        if (attachment == state.desired().attachments.end())
            return fail(no_attachment(command.attachment));
        if (attachment->second.holder && !is_on_tcp(attachment->second.spec))
            return fail(no_proof_by_external(attachment->second.vm));
        if (!attachment->second.address)
            return fail(discreetly(
                {Problem::unsupported,
                 fmt::format("attachment {} has no network, so nothing can be verified over it",
                             command.attachment),
                 "detach the VF and attach it again with a network"}));
        auto const* const pf = find_pf(host, attachment->second.vf.pf);
        if (auto never = pf ? verification_hindrance(pf->info) : std::nullopt)
            return fail(Problem::unsupported, std::move(never->detail), std::move(never->remedy));
        if (attachment->second.state != AttachmentState::attached)
            return fail(discreetly({Problem::conflict,
                                    fmt::format("attachment {} is {}", command.attachment,
                                                enum_name(attachment->second.state)),
                                    "wait until it is attached"}));
        Plan plan;
        plan.steps.emplace_back(AwaitVerification{command.attachment, command.timeout_seconds});
        Admission admission{OperationKind::verify, attachment_subject(command.attachment),
                            std::move(plan),
                            calling(engine.attachments_, &Attachments::verify, command)};
        admission.place = {PlaceRequest::Work::none, attachment->second.vm_uuid};
        admission.attachments.push_back(attachment->second);
        return admission;
    }
};

void Engine::submit(Command command, Intent intent, Reply reply) {
    auto const client = intent.requested_by;
    if (!intent.tenant.empty())
        reply = [reply = std::move(reply)](Result<Answer> answer) {
            reply(for_tenants(std::move(answer)));
        };
    // Answered once it is published: whoever made a change can read it.
    auto const answer = std::make_shared<std::optional<Result<Answer>>>();
    auto const answered = [reply, answer] {
        if (*answer) reply(std::move(**answer));
    };
    auto admitting = [this, command = std::move(command), intent = std::move(intent), answer,
                      answered](Control::State& state) {
        auto const again = [this, command, intent, answer, answered](Control::State& later) {
            *answer = admit(later, command, intent);
            control_->post([](Control::State&) {}, answered);
        };
        auto admitted = admit(state, command, intent);
        if (!admitted && observer_.after_observing(intent.requested_by, again)) return;
        *answer = std::move(admitted);
    };
    if (auto taken = control_->offer(client, std::move(admitting), answered); !taken)
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

Result<void> Engine::check_tenant(Control::State& state, HostView const& host,
                                  Command const& command, Intent const& intent) const {
    if (intent.tenant.empty()) return {};
    auto const tenant = state.desired().tenants.find(intent.tenant);
    if (tenant != state.desired().tenants.end())
        return permit(state, host, tenant->second.tenant, command, operations_.seams().clock.now());
    return fail(discreetly(no_tenant(intent.tenant)));
}

Result<Answer> Engine::admit_known(Control::State& state, Command const& command,
                                   Intent const& intent) {
    if (intent.fence) VFMGR_CHECK(admit_fence(state, *intent.fence));
    if (!intent.idempotency_key.empty() && !intent.dry_run) {
        VFMGR_TRY(auto const observed,
                  state.store.idempotency(intent.idempotency_key, operations_.seams().clock.now()));
        if (observed && observed->request_hash != intent.request_hash)
            return fail(
                discreetly({Problem::conflict, "this Idempotency-Key was used for another request",
                            "use a new key for a new request"}));
        if (observed) {
            VFMGR_TRY(auto operation, state.store.operation(observed->operation));
            if (operation) return Answer{std::move(operation), {}, {}, 0};
        }
    }
    auto const host = control_->snapshot().host;
    VFMGR_CHECK(check_tenant(state, *host, command, intent));
    VFMGR_CHECK(check_confirmed(state.desired(), command));
    VFMGR_CHECK(recovery_.check_recovered(state, command));
    tidy_reservations(state, operations_.seams().clock.now());
    VFMGR_TRY(auto admission, std::visit(Admitting{*this, state, *host, intent}, command));
    if (!restores(admission.kind)) VFMGR_CHECK(operations_.check_bounds(*host, admission.plan));
    auto& attachments = admission.attachments;
    if (intent.dry_run) {
        Answer answer{
            {}, std::move(admission.plan), {}, admission.revision, std::move(admission.changes)};
        if (attachments.size() == 1)
            answer.attachment = std::move(attachments.front());
        else
            answer.attachments = std::move(attachments);
        return answer;
    }
    if (!admission.work) {
        if (admission.stored) VFMGR_CHECK(state.commit(std::move(*admission.stored)));
        return Answer{{}, {}, {}, admission.revision};
    }
    auto operation = new_operation(admission.kind, std::move(admission.subject),
                                   operations_.seams().clock.now());
    operation.requested_by = intent.requested_by;
    operation.request_id = intent.request_id;
    operation.steps = planned_steps(admission.plan);
    if (!attachments.empty()) operation.vm_uuid = vm_uuid_of(attachments.front());
    if (attachments.size() > 1)
        for (auto const& one : attachments) operation.attachments.push_back(one.id);
    VFMGR_TRY(operation, operations_.accept(state, std::move(operation), intent,
                                            std::move(admission.work), admission.place));
    return Answer{std::move(operation), std::move(admission.plan), {}, 0};
}

}  // namespace vfmgr

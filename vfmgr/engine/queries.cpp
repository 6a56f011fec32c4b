// SPDX-License-Identifier: Apache-2.0
// The engine's queries, on the control thread.
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/fleet.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

Error crowded(Client const& client) {
    return {Problem::unavailable,
            fmt::format("{} requests from {} are already waiting for operations", watchers_each_max,
                        client.name),
            "wait for one of them to be answered, or ask without wait"};
}

// Reads in the client's turn; answers once what `read` changed is published.
template <class F>
auto in_turn(Control& control, F read) {
    using Read = std::invoke_result_t<F, Control::State&>;
    using T = typename Read::value_type;
    return Query<T>([&control, read](Client const& client, typename Query<T>::Answer answer) {
        auto const result = std::make_shared<std::optional<Read>>();  // empty: `read` threw
        auto const taken = control.offer(
            client.name, [result, read](Control::State& state) { *result = read(state); },
            [result, answer] {
                if (*result) answer(std::move(**result));
            });
        if (!taken) answer(fail(taken.error()));
    });
}

// Reads what is stored of a VF, also of one that no longer exists: records outlive it.
template <class F>
auto of_vf(Control& control, VfId const& vf, F read) {
    return in_turn(control,
                   [&control, vf, read](Control::State& state) -> std::invoke_result_t<F, Store&> {
                       if (!find_vf(*control.snapshot().host, vf)) {
                           VFMGR_TRY(bool const known, state.store.knows(vf));
                           if (!known)
                               return fail(Problem::not_found,
                                           fmt::format("there is no VF {}, and nothing is stored "
                                                       "of one",
                                                       to_string(vf)),
                                           "GET /v1/vfs lists those of this host");
                       }
                       return read(state.store);
                   });
}

bool may_see(Viewer const& viewer, Operation const& operation) {
    return !viewer || owns(viewer->tenant, operation.vm_uuid.value_or(""));
}

// The VM of an attachment that has ended is known from its events.
Result<bool> may_see(Viewer const& viewer, Control::State& state, std::string const& attachment) {
    if (!viewer) return true;
    auto const known = state.desired().attachments.find(attachment);
    if (known != state.desired().attachments.end())
        return owns(viewer->tenant, known->second.vm_uuid);
    VFMGR_TRY(auto const events, state.store.events(attachment));
    auto const with_vm =
        std::ranges::find_if(events, [](Event const& event) { return event.vm_uuid.has_value(); });
    return with_vm != events.end() && owns(viewer->tenant, *with_vm->vm_uuid);
}

template <class T>
Rows<T> as_seen(Viewer const& viewer, Rows<T> rows) {
    if (viewer)
        for (auto& item : rows.items) item = for_tenants(std::move(item));
    return rows;
}

}  // namespace

Query<std::optional<Operation>> Engine::operation(std::string id, std::chrono::seconds wait,
                                                  Viewer viewer) {
    using Asked = Query<std::optional<Operation>>;
    return Asked([this, id = std::move(id), wait, viewer = std::move(viewer)](
                     Client const& client, Asked::Answer answer) {
        auto const ready = [id, client, answer, viewer](Control::State& state, Watch how) {
            if (how == Watch::crowded) return answer(fail(crowded(client))), true;
            auto operation = state.store.operation(id);
            // At once: the time that an answer takes must not tell that there is one.
            if (operation && *operation && !may_see(viewer, **operation))
                return answer(std::optional<Operation>()), true;
            bool const runs = operation && *operation && !finished(**operation);
            if (runs && how != Watch::expired) return false;
            if (operation && *operation && viewer) *operation = for_tenants(std::move(**operation));
            answer(operation);
            return true;
        };
        auto const deadline = control_->clock().steady_now() + wait;
        if (auto const taken = control_->watch(client, deadline, ready); !taken)
            answer(fail(taken.error()));
    });
}

Query<Operation> Engine::cancel(std::string id, std::optional<std::string> only_of, Viewer viewer) {
    return in_turn(
        *control_,
        [this, id = std::move(id), only_of = std::move(only_of),
         viewer = std::move(viewer)](Control::State& state) -> Result<Operation> {
            VFMGR_TRY(auto const operation, state.store.operation(id));
            if (!operation || !may_see(viewer, *operation)) return fail(no_such_operation(id));
            if (only_of && !finished(*operation) && operation->requested_by != *only_of)
                return fail(
                    Problem::forbidden,
                    fmt::format("operation {} was requested by {}", id, operation->requested_by),
                    "ask an admin to cancel it: operators cancel their own operations");
            VFMGR_CHECK(operations_.cancel(state, *operation));
            return viewer ? for_tenants(*operation) : *operation;
        });
}

Query<Rows<Operation>> Engine::operations(OperationFilter filter, RowRange range, Viewer viewer) {
    if (viewer) filter.vms = viewer->tenant.vms;
    using Found = Result<Rows<Operation>>;
    return in_turn(*control_,
                   [filter = std::move(filter), range,
                    viewer = std::move(viewer)](Control::State& state) -> Found {
                       VFMGR_TRY(auto rows, state.store.operations(filter, range));
                       return as_seen(viewer, std::move(rows));
                   });
}

Query<Rows<Verification>> Engine::verifications(std::string attachment, RowRange range,
                                                Viewer viewer) {
    using Found = Result<Rows<Verification>>;
    return in_turn(*control_,
                   [attachment = std::move(attachment), range,
                    viewer = std::move(viewer)](Control::State& state) -> Found {
                       VFMGR_TRY(bool const seen, may_see(viewer, state, attachment));
                       if (!seen) return Rows<Verification>();
                       VFMGR_TRY(auto rows, state.store.verifications(attachment, range));
                       return as_seen(viewer, std::move(rows));
                   });
}

Query<Rows<Verification>> Engine::verifications(VfId vf, std::string attachment, RowRange range) {
    return of_vf(*control_, vf, [vf, attachment = std::move(attachment), range](Store& store) {
        return store.verifications(vf, range, attachment);
    });
}

Query<Rows<Event>> Engine::events(VfId vf, std::string attachment, RowRange range) {
    return of_vf(*control_, vf, [vf, attachment = std::move(attachment), range](Store& store) {
        return store.events(vf, range, attachment);
    });
}

Query<EventPage> Engine::events_after(std::uint64_t after, std::size_t max) {
    return in_turn(*control_, [after, max](Control::State& state) {
        return state.store.events_after(after, max);
    });
}

Query<Certificate> Engine::certificate(std::string attachment, Viewer viewer) {
    return in_turn(*control_, [attachment, viewer](Control::State& state) -> Result<Certificate> {
        VFMGR_TRY(bool const seen, may_see(viewer, state, attachment));
        if (!seen) return find_certificate({}, {}, attachment);
        VFMGR_TRY(auto const events, state.store.events(attachment));
        if (!viewer) return find_certificate(state.desired(), events, attachment);
        std::vector<Event> own;
        for (auto const& event : events)
            if (auto one = seen_by(viewer->tenant, event)) own.push_back(std::move(*one));
        return find_certificate(seen_by(viewer->tenant, state.desired()), own, attachment);
    });
}

Query<Rows<AuditEntry>> Engine::audit(AuditFilter filter, RowRange range) {
    return in_turn(*control_, [filter = std::move(filter), range](Control::State& state) {
        return state.store.audit(filter, range);
    });
}

Query<std::vector<Token>> Engine::tokens() {
    return in_turn(*control_, [](Control::State& state) { return state.store.tokens(); });
}

Query<Token> Engine::save_token(Token token) {
    return in_turn(*control_, [token](Control::State& state) -> Result<Token> {
        VFMGR_CHECK(state.save_token(token));
        return token;
    });
}

Query<std::optional<Token>> Engine::change_token(std::string id,
                                                 std::function<Result<Token>(Token)> change) {
    using Changed = std::optional<Token>;
    return in_turn(*control_, [id, change](Control::State& state) -> Result<Changed> {
        VFMGR_TRY(auto const tokens, state.store.tokens());
        auto const found = std::ranges::find(tokens, id, &Token::id);
        if (found == tokens.end()) return std::nullopt;
        VFMGR_TRY(auto changed, change(*found));
        VFMGR_CHECK(state.save_token(changed));
        return changed;
    });
}

Result<Attachment const*> attachment_to_enrol(DesiredState const& desired, std::string const& id) {
    auto const found = desired.attachments.find(id);
    if (found == desired.attachments.end()) return fail(no_attachment(id));
    auto const& attachment = found->second;
    if (!is_on_tcp(attachment.spec))
        return fail(Problem::conflict,
                    fmt::format("the guest of attachment {} reports by its vsock device, where it "
                                "needs no enrolment",
                                id),
                    "detach the VF and attach it again with guest_plane tcp");
    if (attachment.state != AttachmentState::attached)
        return fail(Problem::conflict,
                    fmt::format("attachment {} is {}", id, enum_name(attachment.state)),
                    "wait until it is attached");
    return &attachment;
}

namespace {

Result<GuestKeys> keys_of_guest(DesiredState const& desired, std::string const& id) {
    VFMGR_CHECK(attachment_to_enrol(desired, id));
    auto const found = desired.guest_keys.find(id);
    return found == desired.guest_keys.end() ? GuestKeys{id} : found->second;
}

Result<GuestKeys> saved(Control::State& state, GuestKeys keys) {
    Batch batch;
    batch.save_guest_keys.push_back(keys);
    VFMGR_CHECK(state.commit(std::move(batch)));
    return keys;
}

}  // namespace

Query<GuestKeys> Engine::save_enrolment(std::string attachment, GuestSecret token) {
    return in_turn(*control_, [attachment, token](Control::State& state) -> Result<GuestKeys> {
        VFMGR_TRY(auto keys, keys_of_guest(state.desired(), attachment));
        keys.token = token;
        return saved(state, std::move(keys));
    });
}

Result<void> Engine::enrol(std::string const& attachment, std::string const& shown_sha256,
                           GuestSecret const& key) {
    return control_->wait([&](Control::State& state) -> Result<void> {
        VFMGR_TRY(auto keys, keys_of_guest(state.desired(), attachment));
        VFMGR_TRY(auto now, enrolled(std::move(keys), shown_sha256, key, control_->clock().now()));
        VFMGR_CHECK(saved(state, std::move(now)));
        return {};
    });
}

void Engine::save_token_uses(std::map<std::string, TokenUse> uses) {
    control_->post([uses = std::move(uses)](Control::State& state) {
        static_cast<void>(state.store.save_token_uses(uses));
    });
}

Query<bool> Engine::erase_token(std::string id) {
    return in_turn(*control_, [id](Control::State& state) { return state.erase_token(id); });
}

Query<bool> Engine::heed_fence(std::uint64_t fence) {
    return in_turn(*control_, [fence](Control::State& state) -> Result<bool> {
        VFMGR_CHECK(admit_fence(state, fence));
        return true;
    });
}

Query<Engine::StoreFacts> Engine::store_facts() {
    return in_turn(*control_, [](Control::State& state) -> Result<StoreFacts> {
        StoreFacts facts;
        VFMGR_TRY(facts.id, state.store.id());
        VFMGR_TRY(facts.last_event, state.store.last_event());
        return facts;
    });
}

}  // namespace vfmgr

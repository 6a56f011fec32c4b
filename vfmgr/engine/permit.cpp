// SPDX-License-Identifier: Apache-2.0
// What a tenant may request. Every refusal is made from what the tenant sees, so it may read all of
// it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::hours quota_day{24};

std::string choice_of(std::vector<std::string> const& names) {
    return names.empty() ? std::string("none is the tenant's")
                         : fmt::format("one of {}", fmt::join(names, ", "));
}

Error exceeded(Tenant const& tenant, std::string const& what) {
    return {Problem::quota_exceeded, fmt::format("tenant {} {}", tenant.name, what),
            "end something that it has, or ask an admin of this host for a higher quota"};
}

enum class Admitted { now, before };

// An attachment is stored when its operation begins. Those that wait for that count at admission;
// at the beginning they do not, or each of two would keep the other from the last place.
Result<void> check_attachments(Control::State& state, Tenant const& tenant, Admitted admitted,
                               std::size_t more) {
    auto const most = tenant.quota.attachments;
    if (!most) return {};
    std::size_t had = 0;
    for (auto const& [id, attachment] : state.desired().attachments)
        if (owns(tenant, attachment.vm_uuid)) ++had;
    if (admitted == Admitted::now) {
        OperationFilter waiting{OperationState::queued, OperationKind::attach, {}, tenant.vms};
        VFMGR_TRY(auto const operations, state.store.operations(waiting, {}));
        for (auto const& operation : operations.items)
            had += std::max<std::size_t>(operation.attachments.size(), 1);
    }
    if (had + more <= *most) return {};
    return fail(exceeded(
        tenant, fmt::format("has {} attachments{}, and may have {}", had,
                            more > 1 ? fmt::format(", asks for {} more", more) : "", *most)));
}

// The fields of a request that are not the tenant's to set, all at once.
struct Fields {
    Tenant const& tenant;
    std::string place{};  // of the object that has them
    std::vector<Violation> violations{};

    void refuse(std::string const& pointer, std::string detail) {
        violations.push_back({place + pointer, std::move(detail)});
    }
    void check(bool given, std::string const& pointer, std::string_view field) {
        if (given && !may_set(tenant, field))
            refuse(pointer, fmt::format("tenant {} may not set it", tenant.name));
    }
    void check(VfSpec const& settings) {
        for_each_member([&](VfAttribute attribute, auto member) {
            auto const name = enum_name(attribute);
            check((settings.*member).has_value(), fmt::format("/settings/{}", name), name);
        });
    }
    [[nodiscard]] Result<void> judge() && {
        if (violations.empty()) return {};
        Error error{Problem::forbidden,
                    fmt::format("{}: {}", violations.front().pointer, violations.front().detail),
                    "change these fields, or ask an admin of this host to allow them"};
        error.violations = std::move(violations);
        return fail(std::move(error));
    }
};

struct Permitting {
    Control::State& state;
    HostView const& host;
    Tenant const& tenant;
    Time now;
    DesiredState const own = seen_by(tenant, state.desired());

    template <class Command>
    Result<void> operator()(Command const&) const {
        return fail(Problem::forbidden,
                    fmt::format("this is not tenant {}'s to request", tenant.name),
                    "ask an admin of this host");
    }

    Result<void> operator()(Attach const& command) const {
        bool proves = false;
        for (std::size_t i = 0; i < command.specs.size(); ++i) {
            auto const place = command.specs.size() > 1 ? fmt::format("/attachments/{}", i) : "";
            VFMGR_TRY(bool const one_proves, permit_attach(command.specs[i], place));
            proves = proves || one_proves;
        }
        VFMGR_CHECK(check_attachments(state, tenant, Admitted::now, command.specs.size()));
        return proves ? check_minutes(state, tenant, now) : Result<void>();
    }

    Result<void> operator()(ChangeAttachment const& command) const {
        VFMGR_CHECK(check_own(command.attachment));
        auto const& patch = command.patch;
        Fields fields{tenant};
        fields.check(patch.best_effort.has_value(), "/best_effort", "best_effort");
        for (auto const attribute : named_by(patch.settings)) {
            auto const name = enum_name(attribute);
            fields.check(true, fmt::format("/settings/{}", name), name);
        }
        VFMGR_CHECK(std::move(fields).judge());
        bool const proves = patch.verify.value_or(VerifyMode::none) != VerifyMode::none;
        return proves ? check_minutes(state, tenant, now) : Result<void>();
    }

    Result<void> operator()(Detach const& command) const {
        for (auto const& id : command.attachments) VFMGR_CHECK(check_own(id));
        return {};
    }

    Result<void> operator()(Verify const& command) const {
        VFMGR_CHECK(check_own(command.attachment));
        Fields fields{tenant};
        fields.check(command.responder.has_value(), "/responder", "responder");
        VFMGR_CHECK(std::move(fields).judge());
        return check_minutes(state, tenant, now);
    }

    Result<void> operator()(Reserve const& command) const {
        auto const& spec = command.spec;
        if (tenant_in(command.name) != tenant.name)
            return fail(
                Problem::forbidden,
                fmt::format("reservation {} can't be tenant {}'s", command.name, tenant.name),
                fmt::format("name it {}-{}", tenant.name, command.name));
        Fields fields{tenant};
        if (!spec.pool)
            fields.refuse("/pool", fmt::format("is required: {}", choice_of(tenant.pools)));
        VFMGR_CHECK(std::move(fields).judge());
        AttachmentSpec request;
        request.pool = spec.pool;
        request.network = spec.network;
        VFMGR_CHECK(resolved(own, request));
        return check_reserved(command.name, spec.count);
    }

    Result<void> operator()(Release const& command) const {
        if (own.reservations.contains(command.name)) return {};
        return fail(no_reservation(command.name));
    }

    // Returns whether it has the VM tested. `place`: of the spec in the request.
    [[nodiscard]] Result<bool> permit_attach(AttachmentSpec const& spec,
                                             std::string const& place) const {
        Fields fields{tenant, place};
        if (spec.pf) fields.refuse("/pf", "a tenant names a pool");
        if (spec.vf) fields.refuse("/vf", "a tenant names a pool");
        if (!spec.pool && !spec.reservation)
            fields.refuse(
                "/pool", fmt::format("is required, or a reservation: {}", choice_of(tenant.pools)));
        if (spec.holder) fields.refuse("/holder", "a tenant's VMs are libvirt's");
        fields.check(spec.address.has_value(), "/address", "address");
        fields.check(!spec.best_effort.empty(), "/best_effort", "best_effort");
        fields.check(spec.settings);
        VFMGR_CHECK(std::move(fields).judge());
        VFMGR_CHECK(readable_vm(seen_by(tenant, host, own), spec.vm));
        VFMGR_TRY(auto const full, resolved(own, spec));
        VFMGR_CHECK(check_network(full.spec.network));
        return full.spec.verify.value_or(VerifyMode::none) != VerifyMode::none ||
               spec.verify_every_seconds > 0;
    }

    // Without a network the host is open to the VM.
    [[nodiscard]] Result<void> check_network(std::optional<std::string> const& network) const {
        Fields fields{tenant};
        if (!network)
            fields.refuse("/network", fmt::format("is required, as the pool names none: {}",
                                                  choice_of(tenant.networks)));
        return std::move(fields).judge();
    }

    [[nodiscard]] Result<void> check_own(std::string const& attachment) const {
        if (own.attachments.contains(attachment)) return {};
        return fail(no_attachment(attachment));
    }

    [[nodiscard]] Result<void> check_reserved(std::string const& name, std::size_t count) const {
        std::size_t kept = 0;
        for (auto const& [other, reservation] : own.reservations)
            if (other != name) kept += reservation.vfs.size();
        auto const most = tenant.quota.reserved_vfs;
        if (!most || kept + count <= *most) return {};
        return fail(
            exceeded(tenant, fmt::format("has reserved {} VFs, and may reserve {}", kept, *most)));
    }
};

}  // namespace

Error no_tenant(std::string const& name) {
    return {Problem::forbidden, fmt::format("there is no tenant {} any more", name),
            "ask an admin of this host"};
}

Error no_attachment(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no attachment {}", id),
            "vfctl attachment list shows those of this host"};
}

Error no_reservation(std::string const& name) {
    return {Problem::not_found, fmt::format("there is no reservation {}", name),
            "vfctl reservation list shows those of this host"};
}

Result<void> permit(Control::State& state, HostView const& host, Tenant const& tenant,
                    Command const& command, Time now) {
    auto permitted = std::visit(Permitting{state, host, tenant, now}, command);
    if (!permitted) return fail(discreetly(std::move(permitted.error())));
    return {};
}

Result<void> permit_begin(Control::State& state, std::string const& tenant,
                          std::vector<Attachment> const& planned) {
    if (tenant.empty()) return {};
    auto const found = state.desired().tenants.find(tenant);
    if (found == state.desired().tenants.end()) return fail(no_tenant(tenant));
    for (auto const& one : planned)
        if (!owns(found->second.tenant, one.vm_uuid))
            return fail(Problem::not_found, fmt::format("VM {} is not tenant {}'s", one.vm, tenant),
                        "name the VM by its UUID");
    return check_attachments(state, found->second.tenant, Admitted::before, planned.size());
}

Result<void> permit_change(Control::State& state, HostView const& host, std::string const& tenant,
                           ChangeAttachment const& command, Time now) {
    if (tenant.empty()) return {};
    auto const found = state.desired().tenants.find(tenant);
    if (found == state.desired().tenants.end()) return fail(no_tenant(tenant));
    return permit(state, host, found->second.tenant, command, now);
}

// A run that has begun goes on, so the last one may exceed the quota.
Result<void> check_minutes(Control::State& state, Tenant const& tenant, Time now) {
    auto const most = tenant.quota.verification_minutes;
    if (!most) return {};
    VFMGR_TRY(auto used, state.store.run_time(tenant.vms, now - quota_day));
    for (auto const& [attachment, run] : state.runs())
        if (owns(tenant, run.vm_uuid) && run.started_at < now)
            used += std::chrono::floor<std::chrono::milliseconds>(now - run.started_at);
    if (used < std::chrono::minutes(*most)) return {};
    return fail(exceeded(
        tenant, fmt::format("has verified for {} minutes in the last 24 hours, and may for {}",
                            std::chrono::floor<std::chrono::minutes>(used).count(), *most)));
}

}  // namespace vfmgr

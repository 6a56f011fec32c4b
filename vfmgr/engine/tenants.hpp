// SPDX-License-Identifier: Apache-2.0
// What tenants may request, what of it is left of their quotas, and what they get as answers.
#pragma once

#include <memory>
#include <optional>

#include "vfmgr/engine/command.hpp"
#include "vfmgr/engine/control.hpp"
#include "vfmgr/plan/tenants.hpp"

namespace vfmgr {

// Whose view an answer is; null: of no tenant, everything is seen.
using Viewer = std::shared_ptr<DesiredTenant const>;

// --- answers; any thread -------------------------------------------------------------------

[[nodiscard]] Snapshot seen_by(Tenant const& tenant, Snapshot const& now);
// The steps are left out: their sentences may name others' addresses on the same interface.
[[nodiscard]] Operation for_tenants(Operation operation);
[[nodiscard]] Result<Answer> for_tenants(Result<Answer> answer);

// --- requests; on the control thread -------------------------------------------------------

// Judges a command by what the tenant may do and by its quotas. Whatever is not known to be a
// tenant's to request is refused.
[[nodiscard]] Result<void> permit(Control::State& state, HostView const& host, Tenant const& tenant,
                                  Command const& command, Time now);
// Judges attachments once more, as they are planned when they begin: others began meanwhile, and a
// name may be another VM's by now. `tenant` requested them; empty: they are of no tenant.
[[nodiscard]] Result<void> permit_begin(Control::State& state, std::string const& tenant,
                                        std::vector<Attachment> const& planned);
// Judges a change of an attachment once more when it begins.
[[nodiscard]] Result<void> permit_change(Control::State& state, HostView const& host,
                                         std::string const& tenant, ChangeAttachment const& command,
                                         Time now);
// Whether a run may begin.
[[nodiscard]] Result<void> check_minutes(Control::State& state, Tenant const& tenant, Time now);

[[nodiscard]] Error no_tenant(std::string const& name);
[[nodiscard]] Error no_attachment(std::string const& id);
[[nodiscard]] Error no_reservation(std::string const& name);

}  // namespace vfmgr

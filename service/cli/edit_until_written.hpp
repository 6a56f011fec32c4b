// SPDX-License-Identifier: Apache-2.0
// Edits an object of the API without losing what others change meanwhile. One thread.
#pragma once

#include <functional>
#include <string>

#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"

namespace vfmgr {

// The object as it is before an edit.
struct Found {
    std::string body;      // empty: there is none
    std::string revision;  // its ETag; "0" in quotes: there is none
};

// Reads the object at `path`, and writes what `edit` makes of it by PUT. Repeats both if another
// client was faster. `shown_after` as for change().
[[nodiscard]] Result<Settled> edit_until_written(
    Connection const& connection, Options const& options, std::string const& path,
    std::function<Result<std::string>(Found const&)> const& edit, Table const& shown_after);

}  // namespace vfmgr

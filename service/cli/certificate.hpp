// SPDX-License-Identifier: Apache-2.0
// Formats the certificate of an ended attachment for display. Pure functions, any thread.
#pragma once

#include <string>

#include "api/types/attachment.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// Returns one row, so that the rows of several attachments can be combined.
[[nodiscard]] Table certificate_table(Certificate const& certificate);
[[nodiscard]] std::string certificate_page(Certificate const& certificate, Options const& options);

}  // namespace vfmgr

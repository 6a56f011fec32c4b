// SPDX-License-Identifier: Apache-2.0
// Pages of what the store has. Include api/types/json.hpp with it. Pure; any thread.
#pragma once

#include "service/routes/page.hpp"
#include "vfmgr/engine/query.hpp"

namespace vfmgr {

// Answers with the rows that the store was asked for.
template <class T>
[[nodiscard]] Query<http::Response> page_of_rows(Call const& call, Query<Rows<T>> const& query) {
    return query.then([call](Rows<T> const& rows) -> Result<http::Response> {
        return page_response(call, rows.items, rows.next);
    });
}

}  // namespace vfmgr

// SPDX-License-Identifier: Apache-2.0
#include "service/routes/kept_answers.hpp"

#include <fmt/format.h>

#include "api/http/gzip.hpp"
#include "service/routes/conditions.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t etag_digits = 16;

// Control characters are refused in a target, so no two targets have the same text.
std::string target_of(Call const& call) {
    auto text = call.request.path;
    for (auto const& [name, value] : call.request.query)
        text.append("\n").append(name).append("\n").append(value);
    return text;
}

// What an answer may depend on besides the view.
Call without_caller(Call const& call) {
    Call bare;
    bare.request.method = call.request.method;
    bare.request.path = call.request.path;
    bare.request.query = call.request.query;
    bare.ids = call.ids;
    return bare;
}

// As that view has it: the caller authenticated against one that may be older.
std::shared_ptr<DesiredTenant const> tenant_of(Call const& call, Snapshot const& now) {
    if (!call.who.tenant) return nullptr;
    auto const found = now.desired->tenants.find(call.who.tenant->tenant.name);
    if (found == now.desired->tenants.end()) return call.who.tenant;
    return {now.desired, &found->second};
}

bool takes_gzip(Call const& call) {
    auto const given = call.request.headers.find("accept-encoding");
    return given != call.request.headers.end() && http::accepts_gzip(given->second);
}

// An ETag of its own: the two codings are not the same byte for byte (RFC 9110, 8.8.3.3).
std::string of_gzip(std::string etag) {
    return etag.insert(etag.size() - 1, "-gzip");
}

}  // namespace

http::Response KeptAnswers::answer(Published const& route, Call const& call, Snapshot const& now) {
    renew(now);
    auto const tenant = tenant_of(call, now);
    Key key{tenant ? tenant->tenant.name : std::string(), target_of(call)};
    auto found = kept_.find(key);
    if (found != kept_.end()) return response_of(found->second, call);
    auto made = make(route, call, tenant);
    if (!made) return refusal(call, made.error());
    auto& share = shares_[call.who.name];
    if (!has_room(share, *made)) return response_of(*made, call);
    share.kept += made->text->size();
    bytes_ += made->text->size();
    found = kept_.emplace(std::move(key), std::move(*made)).first;
    return response_of(found->second, call);
}

void KeptAnswers::renew(Snapshot const& now) {
    if (view_.host == now.host && view_.desired == now.desired && view_.runs == now.runs) return;
    *this = KeptAnswers();
    view_ = now;
}

Result<KeptAnswers::Kept> KeptAnswers::make(Published const& route, Call const& call,
                                            std::shared_ptr<DesiredTenant const> const& tenant) {
    auto const* view = &view_;
    if (tenant) {
        auto const [it, added] = seen_.try_emplace(tenant->tenant.name);
        if (added) it->second = seen_by(tenant->tenant, view_);
        view = &it->second;
    }
    VFMGR_TRY(auto response, route.answer(without_caller(call), *view));
    Kept kept{std::move(response.headers),
              std::make_shared<std::string const>(std::move(response.body))};
    // One that has an ETag has that of a revision, which a change names in If-Match.
    if (kept.headers.contains("ETag")) return kept;
    auto const digest = verify::digest_hex(*kept.text);
    kept.headers["ETag"] = fmt::format("\"{}\"", digest.substr(0, etag_digits));
    if (kept.text->size() >= compressed_from_bytes) kept.headers["Vary"] = "Accept-Encoding";
    return kept;
}

bool KeptAnswers::has_room(Share const& share, Kept const& made) const {
    auto const bytes = made.text->size();
    return share.kept + bytes <= kept_bytes_each_max && bytes_ + bytes <= kept_bytes_max;
}

http::Response KeptAnswers::response_of(Kept& kept, Call const& call) {
    http::Response response;
    response.headers = kept.headers;
    response.text = kept.text;
    if (kept.headers.contains("Vary") && takes_gzip(call)) {
        auto& share = shares_[call.who.name];
        auto const bytes = kept.text->size();
        if (!kept.compressed && share.compressed + bytes <= compressed_bytes_each_max) {
            share.compressed += bytes;
            kept.compressed = std::make_shared<std::string const>(http::gzip(*kept.text));
        }
        if (kept.compressed) {
            response.text = kept.compressed;
            response.headers["Content-Encoding"] = "gzip";
            response.headers["ETag"] = of_gzip(response.headers["ETag"]);
        }
    }
    auto known = unless_known(call, std::move(response));
    return known ? std::move(*known) : refusal(call, known.error());
}

}  // namespace vfmgr

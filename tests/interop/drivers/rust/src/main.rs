//! Drives the official Rust client: see driven-client.ts for what is said on standard input and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{CallToolRequestParams, CallToolResponse, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ServiceError, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

/// One call at a time: the one whose progress this is.
#[derive(Clone, Default)]
struct Handler {
    current: Arc<AtomicU64>,
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        say(json!({ "id": self.current.load(Ordering::SeqCst), "progress": params.progress }));
    }
}

fn say(what: Value) {
    println!("{what}");
}

fn describe(error: &ServiceError) -> Value {
    match error {
        ServiceError::McpError(told) => json!({
            "text": error.to_string(), "code": told.code.0, "data": told.data,
        }),
        _ => json!({ "text": error.to_string() }),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let Ok(Some(line)) = lines.next_line().await else { return };
    let first: Value = serde_json::from_str(&line).expect("a line of JSON");
    let handler = Handler::default();
    let current = handler.current.clone();
    let url = first["url"].as_str().expect("a URL").to_owned();
    let client = match handler.serve(StreamableHttpClientTransport::from_uri(url)).await {
        Ok(client) => client,
        Err(error) => {
            say(json!({ "id": first["id"], "error": { "text": error.to_string() } }));
            return;
        }
    };
    say(json!({ "id": first["id"], "ok": { "text": "" } }));
    while let Ok(Some(line)) = lines.next_line().await {
        let asked: Value = serde_json::from_str(&line).expect("a line of JSON");
        current.store(asked["id"].as_u64().unwrap_or_default(), Ordering::SeqCst);
        let mut params = CallToolRequestParams::new(asked["tool"].as_str().unwrap_or_default().to_owned());
        params.arguments = asked["arguments"].as_object().cloned();
        match client.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => {
                let parts = result.content.iter().filter_map(|part| part.as_text());
                let text = parts.map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n");
                if result.is_error == Some(true) {
                    say(json!({ "id": asked["id"], "error": { "text": text } }));
                } else {
                    say(json!({ "id": asked["id"], "ok": { "text": text } }));
                }
            }
            Ok(_) => say(json!({ "id": asked["id"], "error": { "text": "another answer than a result" } })),
            Err(error) => say(json!({ "id": asked["id"], "error": describe(&error) })),
        }
    }
}

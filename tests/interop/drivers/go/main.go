// Drives the official Go client: see driven-client.ts for what is said on standard input and output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type asked struct {
	ID        int            `json:"id"`
	Do        string         `json:"do"`
	URL       string         `json:"url"`
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

type failure struct {
	Text string          `json:"text"`
	Code int64           `json:"code,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

type said struct {
	ID       int            `json:"id"`
	OK       map[string]any `json:"ok,omitempty"`
	Progress *float64       `json:"progress,omitempty"`
	Error    *failure       `json:"error,omitempty"`
}

var output sync.Mutex

func say(what said) {
	output.Lock()
	defer output.Unlock()
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

func describe(err error) *failure {
	told := &failure{Text: err.Error()}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		told.Code, told.Data = wire.Code, wire.Data
	}
	return told
}

func textOf(result *mcp.CallToolResult) string {
	var parts []string
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func call(session *mcp.ClientSession, what asked) {
	params := &mcp.CallToolParams{Name: what.Tool, Arguments: what.Arguments}
	params.SetProgressToken(what.ID)
	result, err := session.CallTool(context.Background(), params)
	switch {
	case err != nil:
		say(said{ID: what.ID, Error: describe(err)})
	case result.IsError:
		say(said{ID: what.ID, Error: &failure{Text: textOf(result)}})
	default:
		say(said{ID: what.ID, OK: map[string]any{"text": textOf(result)}})
	}
}

func onProgress(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
	if token, ok := request.Params.ProgressToken.(float64); ok {
		say(said{ID: int(token), Progress: &request.Params.Progress})
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	client := mcp.NewClient(
		&mcp.Implementation{Name: "interop-go", Version: "1.0.0"},
		&mcp.ClientOptions{ProgressNotificationHandler: onProgress},
	)
	var session *mcp.ClientSession
	for lines.Scan() {
		var what asked
		if err := json.Unmarshal(lines.Bytes(), &what); err != nil {
			panic(err)
		}
		if what.Do == "call" {
			go call(session, what)
			continue
		}
		made, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: what.URL}, nil)
		if err != nil {
			say(said{ID: what.ID, Error: describe(err)})
			os.Exit(1)
		}
		session = made
		say(said{ID: what.ID, OK: map[string]any{"text": ""}})
	}
}

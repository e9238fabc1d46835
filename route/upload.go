package route

// Upload is a file of a multipart form. Its content belongs to the handler.
type Upload struct {
	Name        string // chosen by the client: never use it as a path
	ContentType string // chosen by the client
	Content     []byte
}

//! Orders one image and saves the result: what the console shows beside an order.

use std::{env, fs};

use upscale_client::{Client, Order};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = env::var("UPSCALE_API_KEY")?;
    let client = Client::new("https://api.example.com", &key)?;
    let order = Order::new("https://images.example.com/photo.jpg")
        .scale(4)
        .face_enhance(true);
    let done = client.upscale(&order).await?;
    fs::write("result.png", client.download(&done).await?)?;
    Ok(())
}
